// The exact derivative of the Sinkhorn steps taken, from their potentials alone.
#pragma once

#include "sinkhorn.hpp"

namespace graphwright {

// Reverse of the steps. Between two changes of the reference, every half step subtracts A * (left x right): the
// pairs are kept and applied together as one product. As in the steps themselves, columns alike are one: what a plan's
// gradient makes different between them ends with the last column step (see split_copies).
template <class F> class Reverse {
  public:
    static int64_t scratch(int64_t n, int64_t steps) { return (3 * n + 4 * steps + 20) * padded<F>(n); }

    Reverse(int64_t n, int64_t steps, Scratch<F>& memory)
        : kernel(memory.take(n * padded<F>(n))), gradient(memory.take(n * padded<F>(n))),
          shared_plan(memory.take(n)), shared_column(memory.take(n)), n_(n), rows_(padded<F>(n)), columns_(n),
          stride_(padded<F>(n)), absorbed_(memory.take(n * stride_)), left_(memory.take(2 * steps * stride_)),
          right_(memory.take(2 * steps * stride_)), masses_(memory.take(n)), f0_(memory.take(n)), g0_(memory.take(n)), a_(memory.take(n)),
          b_(memory.take(n)), sums_(memory.take(n)), row_gradient_(memory.take(n)), column_gradient_(memory.take(n)),
          pending_(memory.take(n)), f_(memory.take(n)), g_(memory.take(n)), spare(memory.take(n)) {}

    // The number of columns, the last of which stands for the rest of n.
    void shape(int64_t columns) {
        columns_ = columns;
        stride_ = padded<F>(columns);
        std::fill(masses_, masses_ + stride_, F(1));
        masses_[columns - 1] = F(n_ - columns + 1);
    }

    // gradient: of the plan on entry, of L on return.
    void run(const F* rows, const F* columns, int64_t steps) {
        last_step(rows + (steps - 1) * n_, columns + steps * n_);
        for (int64_t step = steps - 1; step >= 0; --step) {
            column_half(rows + step * n_);
            row_half(columns + step * n_);
            std::fill(pending_, pending_ + rows_, F(0));
        }
        flush();
    }

    F *kernel, *gradient;
    // (n) what one copy of the last column has of the plan, and of the column-exact one with sum 1.
    F *shared_plan, *shared_column;

  private:
    // T = (P_r + P_c) / 2, with P_r after one more row step.
    void last_step(const F* f, const F* g) {
        const int64_t lanes = Lanes<F>::count;
        copy_padded(f, n_, f_);
        copy_padded(g, columns_, g_);
        reference_columns();
        pairs_ = 0;
        std::fill(column_gradient_, column_gradient_ + stride_, F(0));
        std::fill(pending_, pending_ + rows_, F(0));
        const int64_t last = columns_ - 1;
        for (int64_t i = 0; i < n_; ++i) {
            F* out = gradient + i * stride_;
            const F* column_exact = absorbed_ + i * stride_;
            softmax_row(kernel + i * stride_, g_, columns_, spare);
            shared_column[i] = column_exact[last];
            shared_plan[i] = (spare[last] / masses_[last] + column_exact[last]) / 2;
            Vector<F> mass{}, held{};
            for (int64_t j = 0; j < stride_; j += lanes) mass += load(out + j) * load(spare + j);
            const F row = sum<F>(mass);
            for (int64_t j = 0; j < stride_; j += lanes) {
                const Vector<F> by_row = load(spare + j) * (load(out + j) - row);
                const Vector<F> by_column = load(column_exact + j) * load(masses_ + j) * load(out + j);
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
        copy_padded(f, n_, f_);
        if (!scaled(f_, f0_, rows_, a_)) reference_columns();
        column_sums(absorbed_, a_, n_, columns_, sums_);
        std::fill(sums_ + columns_, sums_ + stride_, F(1));
        if (!all_safe(sums_, stride_)) {
            reference_columns();
            std::fill(sums_, sums_ + columns_, F(1));
        }
        F *left = left_ + pairs_ * rows_, *right = right_ + pairs_ * stride_;
        for (int64_t j = 0; j < stride_; j += Lanes<F>::count)
            store(right + j, load(column_gradient_ + j) / load(sums_ + j));
        std::copy(a_, a_ + rows_, left);
        row_sums(absorbed_, right, n_, columns_, row_gradient_);
        for (int64_t i = 0; i < rows_; i += Lanes<F>::count)
            store(row_gradient_ + i, load(pending_ + i) - load(a_ + i) * load(row_gradient_ + i));
        ++pairs_;
    }

    // f = -LSE_j(L + g): subtracts P_r x, x the gradient of f; leaves the gradient of g.
    void row_half(const F* g) {
        copy_padded(g, columns_, g_);
        if (!scaled(g_, g0_, stride_, b_)) reference_rows();
        row_sums(absorbed_, b_, n_, columns_, sums_);
        std::fill(sums_ + n_, sums_ + rows_, F(1));
        if (!all_safe(sums_, rows_)) {
            reference_rows();
            std::fill(sums_, sums_ + n_, F(1));
        }
        F *left = left_ + pairs_ * rows_, *right = right_ + pairs_ * stride_;
        for (int64_t i = 0; i < rows_; i += Lanes<F>::count)
            store(left + i, load(row_gradient_ + i) / load(sums_ + i));
        std::copy(b_, b_ + stride_, right);
        column_sums(absorbed_, left, n_, columns_, column_gradient_);
        for (int64_t j = 0; j < stride_; j += Lanes<F>::count)
            store(column_gradient_ + j, load(b_ + j) * -load(column_gradient_ + j));
        ++pairs_;
    }

    // Of padded sums; the padding must be safe, too.
    bool all_safe(const F* sums, int64_t count) const {
        Bits<F> unsafe{};
        for (int64_t i = 0; i < count; i += Lanes<F>::count) {
            const Vector<F> total = load(sums + i);
            unsafe |= ~((total > 1 / SAFE<F>)&(total < SAFE<F>));
        }
        return !any<F>(unsafe);
    }

    // exp(potential - reference), if all of them are safe.
    bool scaled(const F* potential, const F* reference, int64_t count, F* out) const {
        Bits<F> unsafe{};
        for (int64_t i = 0; i < count; i += Lanes<F>::count) {
            const Vector<F> log = load(potential + i) - load(reference + i);
            unsafe |= ~((log > -LOG_SAFE<F>)&(log < LOG_SAFE<F>));
            store(out + i, exponential(log));
        }
        return !any<F>(unsafe);
    }

    void reference_columns() {
        flush();
        softmax_columns(kernel, f_, n_, columns_, absorbed_, g0_, spare);
        for (int64_t j = 0; j < stride_; ++j) g0_[j] = -g0_[j];
        std::copy(f_, f_ + rows_, f0_);
        std::fill(a_, a_ + rows_, F(1));
    }

    void reference_rows() {
        flush();
        for (int64_t i = 0; i < n_; ++i)
            f0_[i] = -softmax_row(kernel + i * stride_, g_, columns_, absorbed_ + i * stride_);
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
                    const F* left = left_ + pair * rows_ + i;
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
                    const F* left = left_ + pair * rows_ + i;
                    for (int row = 0; row < 4; ++row) total[row] += left[row] * right;
                }
                for (int row = 0; row < 4; ++row) subtract(i + row, j, total[row]);
            }
        }
        for (; i < n_; ++i)
            for (int64_t j = 0; j < stride_; j += lanes) {
                Vector<F> total{};
                for (int64_t pair = 0; pair < pairs_; ++pair)
                    total += left_[pair * rows_ + i] * load(right_ + pair * stride_ + j);
                subtract(i, j, total);
            }
        pairs_ = 0;
    }

    void subtract(int64_t i, int64_t j, Vector<F> total) {
        F* out = gradient + i * stride_ + j;
        store(out, load(out) - load(absorbed_ + i * stride_ + j) * total);
    }

    void copy_padded(const F* from, int64_t count, F* to) const {
        std::copy(from, from + count, to);
        std::fill(to + count, to + padded<F>(count), F(0));
    }

    int64_t n_, rows_, columns_, stride_, pairs_ = 0;
    F *absorbed_, *left_, *right_, *masses_, *f0_, *g0_, *a_, *b_, *sums_, *row_gradient_, *column_gradient_, *pending_, *f_,
        *g_;

  public:
    F* spare;
};

// Of a plan's gradient the first columns, the copies of the last one by their mean, kept in means, too.
template <class F> inline void merge_copies(const F* gradient, int64_t n, int64_t columns, F* to, F* means) {
    const int64_t stride = padded<F>(columns), last = columns - 1;
    pack(gradient, n, n, columns, F(0), to);
    for (int64_t i = 0; i < n; ++i) {
        F total = 0;
        for (int64_t j = last; j < n; ++j) total += gradient[i * n + j];
        to[i * stride + last] = means[i] = total / F(n - last);
    }
}

// The gradient of L of every column from that of the first ones. Copies share what the last one has, and differ by
// d_ij - c_i sum_i d_ij, with d_ij = T_ij (G_ij - mean of the copies), T_ij of the plan and c_i of the column-exact
// one: the plan itself and the last column step see the copies one by one, every step before it their sum.
template <class F>
inline void split_copies(const Reverse<F>& reverse, const F* gradient, const F* means, int64_t n, int64_t columns,
                         F* sums, F* out) {
    const int64_t stride = padded<F>(columns), last = columns - 1;
    const F copies = F(n - last);
    std::fill(sums, sums + n, F(0));
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = last; j < n; ++j) sums[j] += reverse.shared_plan[i] * (gradient[i * n + j] - means[i]);
    for (int64_t i = 0; i < n; ++i) {
        const F* merged = reverse.gradient + i * stride;
        std::copy(merged, merged + last, out + i * n);
        for (int64_t j = last; j < n; ++j) {
            const F difference = reverse.shared_plan[i] * (gradient[i * n + j] - means[i]);
            out[i * n + j] = merged[last] / copies + difference - reverse.shared_column[i] * sums[j];
        }
    }
}

// The gradient of L of one sample's first columns into reverse.gradient, given the plan's; means (n) as of
// merge_copies.
template <class F>
void unscale(Reverse<F>& reverse, const F* cost, F epsilon, int64_t n, int64_t columns, const F* row_steps,
             const F* column_steps, int64_t steps, const F* plan_gradient, F* means) {
    reverse.shape(columns);
    pack_kernel(cost, n, columns, epsilon, reverse.kernel, reverse.spare);
    merge_copies(plan_gradient, n, columns, reverse.gradient, means);
    reverse.run(row_steps, column_steps, steps);
}

template <class F>
bool sinkhorn_backward(const F* cost, F epsilon, const F* rows, const F* columns, const F* plan_gradient,
                       int64_t batch, int64_t n, int64_t steps, int64_t threads, F* cost_gradient) {
    return for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(Reverse<F>::scratch(n, steps));
        auto reverse = std::make_shared<Reverse<F>>(n, steps, *memory);
        F* means = memory->take(n);
        return [=, keep = memory](int64_t sample) {
            const F *own_cost = cost + sample * n * n, *given = plan_gradient + sample * n * n;
            F* out = cost_gradient + sample * n * n;
            const int64_t distinct = distinct_columns(own_cost, n, n);
            unscale(*reverse, own_cost, epsilon, n, distinct, rows + sample * steps * n,
                    columns + sample * (steps + 1) * n, steps, given, means);
            split_copies(*reverse, given, means, n, distinct, reverse->spare, out);
            for (int64_t entry = 0; entry < n * n; ++entry) out[entry] /= -epsilon;
        };
    });
}

}  // namespace graphwright
