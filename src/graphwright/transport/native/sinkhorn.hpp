// Sinkhorn in absorbed scalings: A = exp(L + f0 + g0) stays in the cache, a half step is a product with A, and
// f = f0 + log u, g = g0 + log v. A row or column whose sum leaves [1 / SAFE, SAFE] is redone in the log domain and
// absorbed anew, so that entries of A lost to underflow (below e^-87) never weigh more than e^-27 of a sum.
// Columns alike at the end (the padding of a small target) are worked on as one that stands for its copies: alike
// they stay, and a sample then costs what its own size costs.
#pragma once

#include "lanes.hpp"

namespace graphwright {

template <class F> constexpr F SAFE = F(4.8e8);
template <class F> constexpr F LOG_SAFE = F(20);

template <class F> inline bool is_safe(F total) { return total > 1 / SAFE<F> && total < SAFE<F>; }

// How many columns count: all up to the first of those at the end that are alike in each of these rows of n.
template <class F> inline int64_t distinct_columns(const F* matrix, int64_t rows, int64_t n, int64_t at_least = 1) {
    int64_t columns = n;
    for (; columns > at_least; --columns)
        for (int64_t i = 0; i < rows; ++i)
            if (!(matrix[i * n + columns - 2] == matrix[i * n + columns - 1])) return columns;
    return columns;
}

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
inline void softmax_columns(const F* kernel, const F* f, int64_t n, int64_t columns, F* out, F* lse, F* top) {
    const int64_t stride = padded<F>(columns), lanes = Lanes<F>::count;
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
    for (int64_t j = columns; j < stride; ++j) lse[j] = top[j] = 0;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < stride; j += lanes)
            store(out + i * stride + j, load(out + i * stride + j) * load(top + j));
}

// sums[j] = sum_i A_ij x_i
template <class F> inline void column_sums(const F* matrix, const F* x, int64_t n, int64_t columns, F* sums) {
    const int64_t stride = padded<F>(columns), lanes = Lanes<F>::count;
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
template <class F> inline void row_sums(const F* matrix, const F* x, int64_t n, int64_t columns, F* out) {
    const int64_t stride = padded<F>(columns), lanes = Lanes<F>::count;
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
// Of cost (n, n) only the first columns are read; the last of them stands for its copies, and weighs so much.
template <class F>
inline void pack_kernel(const F* cost, int64_t n, int64_t columns, F epsilon, F* kernel, F* least) {
    const int64_t stride = padded<F>(columns), lanes = Lanes<F>::count;
    const F weight = std::log(F(n - columns + 1));
    pack(cost, n, n, columns, std::numeric_limits<F>::infinity(), kernel);
    for (int64_t i = 0; i < n; ++i) {
        F* row = kernel + i * stride;
        least[i] = *std::min_element(row, row + columns);
        for (int64_t j = 0; j < stride; j += lanes) store(row + j, (least[i] - load(row + j)) / epsilon);
        row[columns - 1] += weight;
    }
}

// The steps of one sample. All arrays are padded; kernel holds L with -inf in the padding.
template <class F> class Scaling {
  public:
    static int64_t scratch(int64_t n) { return (2 * n + 10) * padded<F>(n); }

    Scaling(int64_t n, Scratch<F>& memory)
        : n_(n), columns_(n), stride_(padded<F>(n)), copies_(1), log_copies_(0), absorbed(memory.take(n * stride_)),
          kernel(memory.take(n * stride_)), f(memory.take(n)), g(memory.take(n)), f0_(memory.take(n)),
          g0_(memory.take(n)), u(memory.take(n)), v(memory.take(n)), sums_(memory.take(n)), spare(memory.take(n)),
          least(memory.take(n)) {}

    // The number of columns, the last of which stands for the rest of n.
    void shape(int64_t columns) {
        columns_ = columns;
        stride_ = padded<F>(columns);
        copies_ = F(n_ - columns + 1);
        log_copies_ = std::log(copies_);
    }

    // Row step from g = 0: everything is absorbed.
    void start() {
        std::fill(g, g + stride_, F(0));
        std::fill(g0_, g0_ + stride_, F(0));
        std::fill(v, v + stride_, F(1));  // padding columns are zero in A; a scaling of 1 keeps them harmless
        for (int64_t i = 0; i < n_; ++i) absorb_row(i);
    }

    void row_step() {
        row_sums(absorbed, v, n_, columns_, sums_);
        update(sums_, n_, f0_, u, f);
        for (int64_t i = 0; i < n_; ++i)
            if (!is_safe(sums_[i])) absorb_row(i);
    }

    void column_step() {
        column_sums(absorbed, u, n_, columns_, sums_);
        int64_t unsafe = 0;
        for (int64_t j = 0; j < columns_; ++j) unsafe += !is_safe(sums_[j]);
        if (unsafe * 8 > columns_) {
            absorb_columns();
            return;
        }
        update(sums_, columns_, g0_, v, g);
        v[columns_ - 1] *= copies_;
        g[columns_ - 1] += log_copies_;
        if (unsafe)
            for (int64_t j = 0; j < columns_; ++j)
                if (!is_safe(sums_[j])) absorb_column(j);
    }

    // The mean of the column-exact plan of now and the row-exact one after another row step, and its log scaling.
    void averaged(F* plan, int64_t plan_stride, F* log_row) {
        row_sums(absorbed, v, n_, columns_, sums_);
        for (int64_t i = 0; i < n_; ++i) {
            const F* row = absorbed + i * stride_;
            F* out = plan + i * plan_stride;
            const F total = sums_[i];
            if (is_safe(total)) {
                const F scale = (u[i] + 1 / total) / 2;
                for (int64_t j = 0; j < columns_; ++j) out[j] = row[j] * v[j] * scale;
                log_row[i] = f0_[i] + std::log(scale);
                continue;
            }
            const F lse = softmax_row(kernel + i * stride_, g, columns_, spare);
            for (int64_t j = 0; j < columns_; ++j) out[j] = (row[j] * v[j] * u[i] + spare[j]) / 2;
            const F high = std::max(f[i], -lse), low = std::min(f[i], -lse);
            log_row[i] = high + std::log1p(std::exp(low - high)) - std::log(F(2));
        }
    }

  private:
    int64_t n_, columns_, stride_;
    F copies_, log_copies_;

  public:
    F *absorbed, *kernel, *f, *g;

  private:
    F *f0_, *g0_;

  public:
    F *u, *v;

  private:
    // scaling = 1 / sums and potential = reference - log sums, for all; unsafe ones are redone by the caller.
    void update(const F* sums, int64_t count, const F* reference, F* scaling, F* potential) {
        const int64_t stride = padded<F>(count);
        for (int64_t j = 0; j < stride; j += Lanes<F>::count) {
            const Vector<F> total = load(sums + j);
            store(scaling + j, F(1) / total);
            store(potential + j, load(reference + j) - logarithm(total));
        }
        for (int64_t j = count; j < stride; ++j) scaling[j] = 1, potential[j] = 0;
    }

    void absorb_row(int64_t i) {
        F* row = absorbed + i * stride_;
        f0_[i] = f[i] = -softmax_row(kernel + i * stride_, g, columns_, row);
        u[i] = 1;
        for (int64_t j = 0; j < stride_; j += Lanes<F>::count) store(row + j, load(row + j) / load(v + j));
    }

    void absorb_column(int64_t j) {
        const bool last = j == columns_ - 1;
        F top = -std::numeric_limits<F>::infinity(), mass = 0;
        for (int64_t i = 0; i < n_; ++i) top = std::max(top, kernel[i * stride_ + j] + f[i]);
        for (int64_t i = 0; i < n_; ++i) spare[i] = (kernel[i * stride_ + j] + f[i]) - top;
        std::fill(spare + n_, spare + padded<F>(n_), -std::numeric_limits<F>::infinity());
        for (int64_t i = 0; i < padded<F>(n_); i += Lanes<F>::count) {
            store(spare + i, exponential(load(spare + i)));
            mass += sum<F>(load(spare + i));
        }
        g0_[j] = g[j] = -(top + std::log(mass)) + (last ? log_copies_ : F(0));
        v[j] = 1;
        const F scale = (last ? copies_ : F(1)) / mass;
        for (int64_t i = 0; i < n_; ++i) absorbed[i * stride_ + j] = spare[i] * scale / u[i];
    }

    void absorb_columns() {
        softmax_columns(kernel, f, n_, columns_, absorbed, sums_, spare);
        for (int64_t j = 0; j < stride_; ++j) {
            g0_[j] = g[j] = -sums_[j];
            v[j] = 1;
        }
        g0_[columns_ - 1] = g[columns_ - 1] += log_copies_;
        for (int64_t i = 0; i < n_; ++i) {
            absorbed[i * stride_ + columns_ - 1] *= copies_;
            f0_[i] = f[i], u[i] = 1;
        }
    }

    F* sums_;

  public:
    F *spare, *least;
};

// Largest |row sum - 1|, largest |column sum - 1|, <cost, plan>, and the sum of L, which is finite only if L is.
// The last column of the plan is that of its copies together.
template <class F>
inline void describe(const F* plan, const F* cost, const F* kernel, int64_t n, int64_t columns, F* spare, F* figures) {
    std::fill(spare, spare + columns, F(0));
    F row_error = 0, column_error = 0, objective = 0, total = 0;
    for (int64_t i = 0; i < n; ++i) {
        F mass = 0, paid = 0;
        for (int64_t j = 0; j < columns; ++j) {
            const F entry = plan[i * n + j];
            mass += entry;
            paid += entry * cost[i * n + j];
            spare[j] += entry;
            total += kernel[i * padded<F>(columns) + j];
        }
        row_error = std::max(row_error, std::abs(mass - 1));
        objective += paid;
    }
    spare[columns - 1] /= F(n - columns + 1);
    for (int64_t j = 0; j < columns; ++j) column_error = std::max(column_error, std::abs(spare[j] - 1));
    figures[0] = row_error, figures[1] = column_error, figures[2] = objective, figures[3] = total;
}

// Columns from the last on: what each copy has of a whole, or what is the same for all of them.
template <class F> inline void share_copies(F* rows, int64_t count, int64_t n, int64_t columns) {
    const F copies = F(n - columns + 1);
    for (int64_t i = 0; i < count; ++i)
        std::fill(rows + i * n + columns - 1, rows + (i + 1) * n, rows[i * n + columns - 1] / copies);
}
template <class F> inline void repeat_copies(F* row, int64_t n, int64_t columns) {
    std::fill(row + columns, row + n, row[columns - 1]);
}

// The plan of one sample's cost (n, n), of whose columns the first count, its steps' potentials (steps, n) and
// (steps + 1, n), and the log scaling (n) of its rows. The last column of the plan is that of its copies together.
template <class F>
void scale(Scaling<F>& scaling, const F* cost, F epsilon, int64_t n, int64_t columns, int64_t steps, F* plan,
           F* row_steps, F* column_steps, F* log_row) {
    scaling.shape(columns);
    pack_kernel(cost, n, columns, epsilon, scaling.kernel, scaling.least);
    std::fill(column_steps, column_steps + n, F(0));
    for (int64_t step = 0; step < steps; ++step) {
        step ? scaling.row_step() : scaling.start();
        scaling.column_step();
        F* g = column_steps + (step + 1) * n;
        std::copy(scaling.f, scaling.f + n, row_steps + step * n);
        std::copy(scaling.g, scaling.g + columns, g);
        repeat_copies(g, n, columns);
    }
    scaling.averaged(plan, n, log_row);
}

template <class F>
bool sinkhorn_forward(const F* cost, F epsilon, int64_t batch, int64_t n, int64_t steps, int64_t threads, F* plan,
                      F* rows, F* columns, F* row_potential, F* column_potential, F* figures) {
    return for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(Scaling<F>::scratch(n));
        auto scaling = std::make_shared<Scaling<F>>(n, *memory);
        return [=, keep = memory](int64_t sample) {
            const F* own_cost = cost + sample * n * n;
            F *own_plan = plan + sample * n * n, *f_last = row_potential + sample * n,
              *g_last = column_potential + sample * n, *g = columns + sample * (steps + 1) * n;
            const int64_t distinct = distinct_columns(own_cost, n, n);
            scale(*scaling, own_cost, epsilon, n, distinct, steps, own_plan, rows + sample * steps * n, g, f_last);
            for (int64_t i = 0; i < n; ++i) {
                f_last[i] = epsilon * f_last[i] + scaling->least[i];
                g_last[i] = epsilon * g[steps * n + i];
            }
            describe(own_plan, own_cost, scaling->kernel, n, distinct, scaling->spare, figures + sample * 4);
            share_copies(own_plan, n, n, distinct);
        };
    });
}

}  // namespace graphwright
