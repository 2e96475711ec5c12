// Sinkhorn in absorbed scalings: A = exp(L + f0 + g0) stays in the cache, a half step is a product with A, and
// f = f0 + log u, g = g0 + log v. A row or column whose sum leaves [1 / SAFE, SAFE] is redone in the log domain and
// absorbed anew, so that entries of A lost to underflow (below e^-87) never weigh more than e^-27 of a sum.
#pragma once

#include "lanes.hpp"

namespace graphwright {

template <class F> constexpr F SAFE = F(4.8e8);  // e^20

template <class F> inline bool is_safe(F total) { return total > 1 / SAFE<F> && total < SAFE<F>; }

// log-sum-exp of row + shift over the first n, and the exponentials themselves, normalised; padding becomes 0.
template <class F> inline F softmax_row(const F* row, const F* shift, int64_t n, F* out) {
    const int64_t stride = padded<F>(n), lanes = Lanes<F>::count;
    Vector<F> most = all<F>(-std::numeric_limits<F>::infinity());
    for (int64_t j = 0; j < stride; j += lanes) {
        const Vector<F> x = load(row + j) + load(shift + j);
        store(out + j, x);
        most = larger<F>(most, x);
    }
    const F top = largest<F>(most);
    Vector<F> total{};
    for (int64_t j = 0; j < stride; j += lanes) {
        const Vector<F> e = exponential(load(out + j) - top);
        store(out + j, e);
        total += e;
    }
    const F mass = sum<F>(total), scale = 1 / mass;
    for (int64_t j = 0; j < stride; j += lanes) store(out + j, load(out + j) * scale);
    return top + std::log(mass);
}

// The same over each column: out = softmax over i of L + f; returns log-sum-exps in lse. Padding columns become 0.
template <class F>
inline void softmax_columns(const F* kernel, const F* f, int64_t n, F* out, F* lse, F* top) {
    const int64_t stride = padded<F>(n), lanes = Lanes<F>::count;
    for (int64_t j = 0; j < stride; j += lanes) {
        Vector<F> most = all<F>(std::numeric_limits<F>::lowest());
        for (int64_t i = 0; i < n; ++i) most = larger<F>(most, load(kernel + i * stride + j) + f[i]);
        store(top + j, most);
        store(lse + j, Vector<F>{});
    }
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < stride; j += lanes) {
            const Vector<F> e = exponential((load(kernel + i * stride + j) + f[i]) - load(top + j));
            store(out + i * stride + j, e);
            store(lse + j, load(lse + j) + e);
        }
    for (int64_t j = 0; j < stride; j += lanes) {
        const Vector<F> mass = load(lse + j);
        store(lse + j, load(top + j) + logarithm(mass));
        store(top + j, F(1) / mass);
    }
    for (int64_t j = n; j < stride; ++j) lse[j] = top[j] = 0;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < stride; j += lanes)
            store(out + i * stride + j, load(out + i * stride + j) * load(top + j));
}

// sums[j] = sum_i A_ij x_i
template <class F> inline void column_sums(const F* matrix, const F* x, int64_t n, F* sums) {
    const int64_t stride = padded<F>(n), lanes = Lanes<F>::count;
    for (int64_t j = 0; j < stride; j += lanes) {
        Vector<F> even{}, odd{};
        int64_t i = 0;
        for (; i + 1 < n; i += 2) {
            even += load(matrix + i * stride + j) * x[i];
            odd += load(matrix + (i + 1) * stride + j) * x[i + 1];
        }
        if (i < n) even += load(matrix + i * stride + j) * x[i];
        store(sums + j, even + odd);
    }
}

template <class F> inline F dot(const F* row, const F* x, int64_t stride) {
    Vector<F> total{};
    for (int64_t j = 0; j < stride; j += Lanes<F>::count) total += load(row + j) * load(x + j);
    return sum<F>(total);
}

// sums[i] = sum_j A_ij x_j
template <class F> inline void row_sums(const F* matrix, const F* x, int64_t n, F* out) {
    const int64_t stride = padded<F>(n), lanes = Lanes<F>::count;
    int64_t i = 0;
    for (; i + 3 < n; i += 4) {
        Vector<F> total[4] = {};
        for (int64_t j = 0; j < stride; j += lanes) {
            const Vector<F> here = load(x + j);
            for (int row = 0; row < 4; ++row) total[row] += load(matrix + (i + row) * stride + j) * here;
        }
        sums(total, out + i);
    }
    for (; i < n; ++i) out[i] = dot(matrix + i * stride, x, stride);
}

// L = (least of the row - cost) / epsilon, padded with -inf: a constant on a row of the cost changes no plan.
template <class F> inline void pack_kernel(const F* cost, int64_t n, F epsilon, F* kernel, F* least) {
    const int64_t stride = padded<F>(n), lanes = Lanes<F>::count;
    pack(cost, n, n, std::numeric_limits<F>::infinity(), kernel);
    for (int64_t i = 0; i < n; ++i) {
        F* row = kernel + i * stride;
        least[i] = *std::min_element(row, row + n);
        for (int64_t j = 0; j < stride; j += lanes) store(row + j, (least[i] - load(row + j)) / epsilon);
    }
}

// The steps of one sample. All arrays are padded; kernel holds L with -inf in the padding.
template <class F> class Scaling {
  public:
    static int64_t scratch(int64_t n) { return (2 * n + 10) * padded<F>(n); }

    Scaling(int64_t n, Scratch<F>& memory)
        : n_(n), stride_(padded<F>(n)), absorbed(memory.take(n * stride_)), kernel(memory.take(n * stride_)),
          f(memory.take(n)), g(memory.take(n)), f0_(memory.take(n)), g0_(memory.take(n)), u(memory.take(n)),
          v(memory.take(n)), sums_(memory.take(n)), spare(memory.take(n)),
          least(memory.take(n)) {
        // Padding columns are zero in A; a scaling of 1 keeps them harmless.
        std::fill(v, v + stride_, F(1));
    }

    // Row step from g: everything is absorbed.
    void start(const F* g_start) {
        std::fill(g + n_, g + stride_, F(0));
        std::copy(g_start, g_start + n_, g);
        std::copy(g, g + stride_, g0_);
        std::fill(v, v + stride_, F(1));
        for (int64_t i = 0; i < n_; ++i) absorb_row(i);
    }

    void row_step() {
        row_sums(absorbed, v, n_, sums_);
        update(sums_, f0_, u, f);
        for (int64_t i = 0; i < n_; ++i)
            if (!is_safe(sums_[i])) absorb_row(i);
    }

    void column_step() {
        column_sums(absorbed, u, n_, sums_);
        int64_t unsafe = 0;
        for (int64_t j = 0; j < n_; ++j) unsafe += !is_safe(sums_[j]);
        if (unsafe * 8 > n_) {
            absorb_columns();
            return;
        }
        update(sums_, g0_, v, g);
        if (unsafe)
            for (int64_t j = 0; j < n_; ++j)
                if (!is_safe(sums_[j])) absorb_column(j);
    }

    // The mean of the column-exact plan of now and the row-exact one after another row step, and its log scaling.
    void averaged(F* plan, int64_t plan_stride, F* log_row) {
        row_sums(absorbed, v, n_, sums_);
        for (int64_t i = 0; i < n_; ++i) {
            const F* row = absorbed + i * stride_;
            F* out = plan + i * plan_stride;
            const F total = sums_[i];
            if (is_safe(total)) {
                const F scale = (u[i] + 1 / total) / 2;
                for (int64_t j = 0; j < n_; ++j) out[j] = row[j] * v[j] * scale;
                log_row[i] = f0_[i] + std::log(scale);
                continue;
            }
            const F lse = softmax_row(kernel + i * stride_, g, n_, spare);
            for (int64_t j = 0; j < n_; ++j) out[j] = (row[j] * v[j] * u[i] + spare[j]) / 2;
            const F high = std::max(f[i], -lse), low = std::min(f[i], -lse);
            log_row[i] = high + std::log1p(std::exp(low - high)) - std::log(F(2));
        }
    }

    int64_t n_, stride_;
    F *absorbed, *kernel, *f, *g;

  private:
    F *f0_, *g0_;

  public:
    F *u, *v;

  private:
    // scaling = 1 / sums and potential = reference - log sums, for all; unsafe ones are redone by the caller.
    void update(const F* sums, const F* reference, F* scaling, F* potential) {
        for (int64_t j = 0; j < stride_; j += Lanes<F>::count) {
            const Vector<F> total = load(sums + j);
            store(scaling + j, F(1) / total);
            store(potential + j, load(reference + j) - logarithm(total));
        }
        for (int64_t j = n_; j < stride_; ++j) scaling[j] = 1, potential[j] = 0;
    }

    void absorb_row(int64_t i) {
        F* row = absorbed + i * stride_;
        f0_[i] = f[i] = -softmax_row(kernel + i * stride_, g, n_, row);
        u[i] = 1;
        for (int64_t j = 0; j < stride_; j += Lanes<F>::count) store(row + j, load(row + j) / load(v + j));
    }

    void absorb_column(int64_t j) {
        F top = -std::numeric_limits<F>::infinity(), mass = 0;
        for (int64_t i = 0; i < n_; ++i) top = std::max(top, kernel[i * stride_ + j] + f[i]);
        for (int64_t i = 0; i < n_; ++i) spare[i] = (kernel[i * stride_ + j] + f[i]) - top;
        std::fill(spare + n_, spare + stride_, -std::numeric_limits<F>::infinity());
        for (int64_t i = 0; i < stride_; i += Lanes<F>::count) {
            store(spare + i, exponential(load(spare + i)));
            mass += sum<F>(load(spare + i));
        }
        g0_[j] = g[j] = -(top + std::log(mass));
        v[j] = 1;
        for (int64_t i = 0; i < n_; ++i) absorbed[i * stride_ + j] = spare[i] / (mass * u[i]);
    }

    void absorb_columns() {
        softmax_columns(kernel, f, n_, absorbed, sums_, spare);
        for (int64_t j = 0; j < stride_; ++j) {
            g0_[j] = g[j] = -sums_[j];
            v[j] = 1;
        }
        for (int64_t i = 0; i < n_; ++i) f0_[i] = f[i], u[i] = 1;
    }

    F* sums_;

  public:
    F *spare, *least;
};

// Largest |row sum - 1|, largest |column sum - 1|, <cost, plan>, and the sum of L, which is finite only if L is.
template <class F>
inline void describe(const F* plan, const F* cost, const F* kernel, int64_t n, F* spare, F* figures) {
    std::fill(spare, spare + n, F(0));
    F row_error = 0, column_error = 0, objective = 0, total = 0;
    for (int64_t i = 0; i < n; ++i) {
        F mass = 0, paid = 0;
        for (int64_t j = 0; j < n; ++j) {
            const F entry = plan[i * n + j];
            mass += entry;
            paid += entry * cost[i * n + j];
            spare[j] += entry;
            total += kernel[i * padded<F>(n) + j];
        }
        row_error = std::max(row_error, std::abs(mass - 1));
        objective += paid;
    }
    for (int64_t j = 0; j < n; ++j) column_error = std::max(column_error, std::abs(spare[j] - 1));
    figures[0] = row_error, figures[1] = column_error, figures[2] = objective, figures[3] = total;
}

template <class F>
void sinkhorn_forward(const F* cost, F epsilon, int64_t batch, int64_t n, int64_t steps, int64_t threads, F* plan,
                      F* rows, F* columns, F* row_potential, F* column_potential, F* figures) {
    for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(Scaling<F>::scratch(n));
        auto scaling = std::make_shared<Scaling<F>>(n, *memory);
        return [=, keep = memory](int64_t sample) {
            F *f_last = row_potential + sample * n, *g_last = column_potential + sample * n;
            pack_kernel(cost + sample * n * n, n, epsilon, scaling->kernel, scaling->least);
            F* f = rows + sample * steps * n;
            F* g = columns + sample * (steps + 1) * n;
            std::fill(g, g + n, F(0));
            for (int64_t step = 0; step < steps; ++step) {
                step ? scaling->row_step() : scaling->start(g);
                scaling->column_step();
                std::copy(scaling->f, scaling->f + n, f + step * n);
                std::copy(scaling->g, scaling->g + n, g + (step + 1) * n);
            }
            scaling->averaged(plan + sample * n * n, n, f_last);
            for (int64_t i = 0; i < n; ++i) {
                f_last[i] = epsilon * f_last[i] + scaling->least[i];
                g_last[i] = epsilon * scaling->g[i];
            }
            const int64_t square = n * n;
            describe(plan + sample * square, cost + sample * square, scaling->kernel, n, scaling->spare,
                     figures + sample * 4);
        };
    });
}

// Reverse of the steps. Between two changes of the reference, every half step subtracts A * (left x right): the
// pairs are kept and applied together as one product.
template <class F> class Reverse {
  public:
    static int64_t scratch(int64_t n, int64_t steps) { return (3 * n + 4 * steps + 16) * padded<F>(n); }

    Reverse(int64_t n, int64_t steps, Scratch<F>& memory)
        : kernel(memory.take(n * padded<F>(n))), gradient(memory.take(n * padded<F>(n))), n_(n),
          stride_(padded<F>(n)), absorbed_(memory.take(n * stride_)), left_(memory.take(2 * steps * stride_)),
          right_(memory.take(2 * steps * stride_)), f0_(memory.take(n)), g0_(memory.take(n)), a_(memory.take(n)),
          b_(memory.take(n)), sums_(memory.take(n)), row_gradient_(memory.take(n)), column_gradient_(memory.take(n)),
          pending_(memory.take(n)), f_(memory.take(n)), g_(memory.take(n)), spare(memory.take(n)) {}

    // gradient: of the plan on entry, of L on return.
    void run(const F* rows, const F* columns, int64_t steps) {
        last_step(rows + (steps - 1) * n_, columns + steps * n_);
        for (int64_t step = steps - 1; step >= 0; --step) {
            column_half(rows + step * n_);
            row_half(columns + step * n_);
            std::fill(pending_, pending_ + stride_, F(0));
        }
        flush();
    }

    F *kernel, *gradient;

  private:
    // T = (P_r + P_c) / 2, with P_r after one more row step.
    void last_step(const F* f, const F* g) {
        const int64_t lanes = Lanes<F>::count;
        copy_padded(f, f_);
        copy_padded(g, g_);
        reference_columns();
        pairs_ = 0;
        std::fill(column_gradient_, column_gradient_ + stride_, F(0));
        std::fill(pending_, pending_ + stride_, F(0));
        for (int64_t i = 0; i < n_; ++i) {
            F* out = gradient + i * stride_;
            const F* column_exact = absorbed_ + i * stride_;
            softmax_row(kernel + i * stride_, g_, n_, spare);
            Vector<F> mass{}, held{};
            for (int64_t j = 0; j < stride_; j += lanes) mass += load(out + j) * load(spare + j);
            const F row = sum<F>(mass);
            for (int64_t j = 0; j < stride_; j += lanes) {
                const Vector<F> by_row = load(spare + j) * (load(out + j) - row);
                const Vector<F> by_column = load(column_exact + j) * load(out + j);
                held += by_column;
                const Vector<F> both = (by_row + by_column) * F(0.5);
                store(out + j, both);
                store(column_gradient_ + j, load(column_gradient_ + j) + both);
            }
            pending_[i] = sum<F>(held) / 2;
        }
    }

    // g = -LSE_i(L + f): subtracts P_c x, x the gradient of g; leaves the gradient of f.
    void column_half(const F* f) {
        copy_padded(f, f_);
        if (!scaled(f_, f0_, a_)) reference_columns();
        column_sums(absorbed_, a_, n_, sums_);
        std::fill(sums_ + n_, sums_ + stride_, F(1));
        if (!all_safe(sums_)) {
            reference_columns();
            std::fill(sums_, sums_ + n_, F(1));
        }
        F *left = left_ + pairs_ * stride_, *right = right_ + pairs_ * stride_;
        for (int64_t j = 0; j < stride_; j += Lanes<F>::count)
            store(right + j, load(column_gradient_ + j) / load(sums_ + j));
        std::copy(a_, a_ + stride_, left);
        row_sums(absorbed_, right, n_, row_gradient_);
        for (int64_t i = 0; i < stride_; i += Lanes<F>::count)
            store(row_gradient_ + i, load(pending_ + i) - load(a_ + i) * load(row_gradient_ + i));
        ++pairs_;
    }

    // f = -LSE_j(L + g): subtracts P_r x, x the gradient of f; leaves the gradient of g.
    void row_half(const F* g) {
        copy_padded(g, g_);
        if (!scaled(g_, g0_, b_)) reference_rows();
        row_sums(absorbed_, b_, n_, sums_);
        std::fill(sums_ + n_, sums_ + stride_, F(1));
        if (!all_safe(sums_)) {
            reference_rows();
            std::fill(sums_, sums_ + n_, F(1));
        }
        F *left = left_ + pairs_ * stride_, *right = right_ + pairs_ * stride_;
        for (int64_t i = 0; i < stride_; i += Lanes<F>::count)
            store(left + i, load(row_gradient_ + i) / load(sums_ + i));
        std::copy(b_, b_ + stride_, right);
        column_sums(absorbed_, left, n_, column_gradient_);
        for (int64_t j = 0; j < stride_; j += Lanes<F>::count)
            store(column_gradient_ + j, load(b_ + j) * -load(column_gradient_ + j));
        ++pairs_;
    }

    // Of padded sums; the padding must be safe, too.
    bool all_safe(const F* sums) const {
        Bits<F> unsafe{};
        for (int64_t i = 0; i < stride_; i += Lanes<F>::count) {
            const Vector<F> total = load(sums + i);
            unsafe |= ~((total > 1 / SAFE<F>)&(total < SAFE<F>));
        }
        for (int64_t lane = 0; lane < Lanes<F>::count; ++lane)
            if (unsafe[lane]) return false;
        return true;
    }

    // exp(potential - reference), if all of them are safe.
    bool scaled(const F* potential, const F* reference, F* out) const {
        for (int64_t i = 0; i < stride_; i += Lanes<F>::count)
            store(out + i, exponential(load(potential + i) - load(reference + i)));
        return all_safe(out);
    }

    void reference_columns() {
        flush();
        softmax_columns(kernel, f_, n_, absorbed_, g0_, spare);
        for (int64_t j = 0; j < stride_; ++j) g0_[j] = -g0_[j];
        std::copy(f_, f_ + stride_, f0_);
        std::fill(a_, a_ + stride_, F(1));
    }

    void reference_rows() {
        flush();
        for (int64_t i = 0; i < n_; ++i)
            f0_[i] = -softmax_row(kernel + i * stride_, g_, n_, absorbed_ + i * stride_);
        std::copy(g_, g_ + stride_, g0_);
        std::fill(b_, b_ + stride_, F(1));
    }

    // gradient -= A * sum over pairs of left x right
    void flush() {
        const int64_t lanes = Lanes<F>::count;
        if (pairs_ == 0) return;
        int64_t i = 0;
        for (; i + 3 < n_; i += 4) {
            int64_t j = 0;
            for (; j + lanes < stride_; j += 2 * lanes) {
                Vector<F> low[4] = {}, high[4] = {};
                for (int64_t pair = 0; pair < pairs_; ++pair) {
                    const F* right = right_ + pair * stride_ + j;
                    const F* left = left_ + pair * stride_ + i;
                    const Vector<F> first = load(right), second = load(right + lanes);
                    for (int row = 0; row < 4; ++row) {
                        low[row] += left[row] * first;
                        high[row] += left[row] * second;
                    }
                }
                for (int row = 0; row < 4; ++row) {
                    subtract(i + row, j, low[row]);
                    subtract(i + row, j + lanes, high[row]);
                }
            }
            for (; j < stride_; j += lanes) {
                Vector<F> total[4] = {};
                for (int64_t pair = 0; pair < pairs_; ++pair) {
                    const Vector<F> right = load(right_ + pair * stride_ + j);
                    const F* left = left_ + pair * stride_ + i;
                    for (int row = 0; row < 4; ++row) total[row] += left[row] * right;
                }
                for (int row = 0; row < 4; ++row) subtract(i + row, j, total[row]);
            }
        }
        for (; i < n_; ++i)
            for (int64_t j = 0; j < stride_; j += lanes) {
                Vector<F> total{};
                for (int64_t pair = 0; pair < pairs_; ++pair)
                    total += left_[pair * stride_ + i] * load(right_ + pair * stride_ + j);
                subtract(i, j, total);
            }
        pairs_ = 0;
    }

    void subtract(int64_t i, int64_t j, Vector<F> total) {
        F* out = gradient + i * stride_ + j;
        store(out, load(out) - load(absorbed_ + i * stride_ + j) * total);
    }

    void copy_padded(const F* from, F* to) const {
        std::copy(from, from + n_, to);
        std::fill(to + n_, to + stride_, F(0));
    }

    int64_t n_, stride_, pairs_ = 0;
    F *absorbed_, *left_, *right_, *f0_, *g0_, *a_, *b_, *sums_, *row_gradient_, *column_gradient_, *pending_, *f_,
        *g_;

  public:
    F* spare;
};

template <class F>
void sinkhorn_backward(const F* cost, F epsilon, const F* rows, const F* columns, const F* plan_gradient,
                       int64_t batch, int64_t n, int64_t steps, int64_t threads, F* cost_gradient) {
    for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(Reverse<F>::scratch(n, steps));
        auto reverse = std::make_shared<Reverse<F>>(n, steps, *memory);
        return [=, keep = memory](int64_t sample) {
            pack_kernel(cost + sample * n * n, n, epsilon, reverse->kernel, reverse->spare);
            pack(plan_gradient + sample * n * n, n, n, F(0), reverse->gradient);
            reverse->run(rows + sample * steps * n, columns + sample * (steps + 1) * n, steps);
            F* out = cost_gradient + sample * n * n;
            for (int64_t i = 0; i < n; ++i)
                for (int64_t j = 0; j < n; ++j) out[i * n + j] = reverse->gradient[i * padded<F>(n) + j] / -epsilon;
        };
    });
}

}  // namespace graphwright
