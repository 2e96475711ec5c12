// The C interface that graphwright.transport.native.library binds; every function once in single, once in double. They return 0
// where there is no memory.
#include "conditional_gradient.hpp"
#include "l1_plan.hpp"
#include "mirror.hpp"
#include "sinkhorn.hpp"
#include "sinkhorn_backward.hpp"

using namespace graphwright;

#define GRAPHWRIGHT_KERNELS(F, SUFFIX)                                                                               \
    int64_t sinkhorn_forward_##SUFFIX(const F* cost, double epsilon, int64_t batch, int64_t n, int64_t steps, int64_t threads,    \
                                   F* plan, F* rows, F* columns, F* row_potential, F* column_potential, F* figures) { \
        return sinkhorn_forward<F>(cost, F(epsilon), batch, n, steps, threads, plan, rows, columns, row_potential,                \
                            column_potential, figures);                                                              \
    }                                                                                                                \
    int64_t sinkhorn_backward_##SUFFIX(const F* cost, double epsilon, const F* rows, const F* columns, const F* gradient,         \
                                    int64_t batch, int64_t n, int64_t steps, int64_t threads, F* out) {              \
        return sinkhorn_backward<F>(cost, F(epsilon), rows, columns, gradient, batch, n, steps, threads, out);                    \
    }                                                                                                                \
    int64_t l1_plan_forward_##SUFFIX(const F* x, const F* y, const int64_t* counts, const int64_t* starts,              \
                                  const F* beyond, const F* further, int64_t n, int64_t d, double epsilon, double least,       \
                                  int64_t batch, int64_t steps,                                                      \
                                  int64_t threads, F* cost, F* totals, F* plan, F* rows, F* columns, F* mass) {      \
        return l1_plan_forward<F>({x, y, counts, starts, beyond, further, n, d}, F(epsilon), F(least), batch, steps, threads, cost, totals,  \
                           plan, rows, columns, mass);                                                               \
    }                                                                                                                \
    int64_t l1_plan_backward_##SUFFIX(const F* x, const F* y, const int64_t* counts, const int64_t* starts,             \
                                   const F* beyond, const F* further, int64_t n, int64_t d, double epsilon, double least,     \
                                   const F* cost, const F* totals,                                                   \
                                   const F* rows, const F* columns, const F* gradient, int64_t batch, int64_t steps, \
                                   int64_t threads, F* to_x, F* to_y, F* to_padding) {                                \
        return l1_plan_backward<F>({x, y, counts, starts, beyond, further, n, d}, F(epsilon), F(least), cost, totals, rows, columns,         \
                            gradient, batch, steps, threads, to_x, to_y, to_padding);                                 \
    }                                                                                                                \
    int64_t mirror_descent_##SUFFIX(const F* linear, const F* mask, const F* pair_cost, const F* target_cost,           \
                                 const F* left, const F* right, int64_t channels, int64_t self_loops_excluded,       \
                                 const F* start, const F* log_start, int64_t batch, int64_t n, double step_size,     \
                                 int64_t outer, int64_t inner, double tolerance, int64_t threads, F* plan,           \
                                 F* log_row, F* log_column, int64_t* taken) {                                        \
        const Form<F> form{linear, mask, pair_cost, target_cost, left, right, channels, self_loops_excluded != 0};   \
        return mirror_descent<F>(form, start, log_start, batch, n, F(step_size), outer, inner, F(tolerance), threads, plan, \
                          log_row, log_column, taken);                                                               \
    }                                                                                                                \
    int64_t conditional_gradient_##SUFFIX(const F* linear, const F* mask, const F* pair_cost, const F* target_cost,     \
                                       const F* left, const F* right, int64_t channels, int64_t self_loops_excluded, \
                                       const F* start, int64_t batch, int64_t n, int64_t most, double tolerance,     \
                                       int64_t threads, F* plan, F* rows, F* columns, int64_t* taken) {              \
        const Form<F> form{linear, mask, pair_cost, target_cost, left, right, channels, self_loops_excluded != 0};   \
        return conditional_gradient<F>(form, start, batch, n, most, F(tolerance), threads, plan, rows, columns, taken);     \
    }

extern "C" {
GRAPHWRIGHT_KERNELS(float, f32)
GRAPHWRIGHT_KERNELS(double, f64)
}
