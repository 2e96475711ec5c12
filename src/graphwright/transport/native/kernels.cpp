// The C interface that graphwright.transport.native.library binds; every function once in single, once in double.
#include "distances.hpp"
#include "mirror.hpp"
#include "sinkhorn.hpp"
#include "sinkhorn_backward.hpp"

using namespace graphwright;

#define GRAPHWRIGHT_KERNELS(F, SUFFIX)                                                                               \
    void sinkhorn_forward_##SUFFIX(const F* cost, double epsilon, int64_t batch, int64_t n, int64_t steps, int64_t threads,    \
                                   F* plan, F* rows, F* columns, F* row_potential, F* column_potential, F* figures) { \
        sinkhorn_forward<F>(cost, F(epsilon), batch, n, steps, threads, plan, rows, columns, row_potential,                \
                            column_potential, figures);                                                              \
    }                                                                                                                \
    void sinkhorn_backward_##SUFFIX(const F* cost, double epsilon, const F* rows, const F* columns, const F* gradient,         \
                                    int64_t batch, int64_t n, int64_t steps, int64_t threads, F* out) {              \
        sinkhorn_backward<F>(cost, F(epsilon), rows, columns, gradient, batch, n, steps, threads, out);                    \
    }                                                                                                                \
    void l1_forward_##SUFFIX(const F* x, const F* y, const int64_t* counts, int64_t batch, int64_t n, int64_t m,     \
                             int64_t d, int64_t threads, F* out) {                                                   \
        l1_forward<F>(x, y, counts, batch, n, m, d, threads, out);                                                   \
    }                                                                                                                \
    void l1_backward_##SUFFIX(const F* x, const F* y, const int64_t* counts, const F* gradient, int64_t batch,       \
                              int64_t n, int64_t m, int64_t d, int64_t threads, F* x_gradient, F* y_gradient) {      \
        l1_backward<F>(x, y, counts, gradient, batch, n, m, d, threads, x_gradient, y_gradient);                     \
    }                                                                                                                \
    void mirror_descent_##SUFFIX(const F* linear, const F* mask, const F* pair_cost, const F* target_cost,           \
                                 const F* left, const F* right, int64_t channels, int64_t self_loops_excluded,       \
                                 const F* start, const F* log_start, int64_t batch, int64_t n, double step_size,     \
                                 int64_t outer, int64_t inner, double tolerance, int64_t threads, F* plan,           \
                                 F* log_row, F* log_column, int64_t* taken) {                                        \
        const Form<F> form{linear, mask, pair_cost, target_cost, left, right, channels, self_loops_excluded != 0};   \
        mirror_descent<F>(form, start, log_start, batch, n, F(step_size), outer, inner, F(tolerance), threads, plan, \
                          log_row, log_column, taken);                                                               \
    }

extern "C" {
GRAPHWRIGHT_KERNELS(float, f32)
GRAPHWRIGHT_KERNELS(double, f64)
}
