// Mirror descent on a quadratic form, one sample at a time: plan, kernel and form stay in the cache.
#pragma once

#include "sinkhorn.hpp"

namespace graphwright {

// The form of graphwright.transport.problem.QuadraticForm, (batch, ...) each; target_cost may be null.
template <class F> struct Form {
    const F *linear, *mask, *pair_cost, *target_cost, *left, *right;
    int64_t channels;
    bool self_loops_excluded;
};

// out += scale * (a b): a (n, inner) of any row stride, b (inner, columns) and out (n, columns) padded.
template <class F>
inline void add_product(const F* a, int64_t a_stride, const F* b, int64_t n, int64_t inner, int64_t columns, F scale,
                        F* out) {
    const int64_t stride = padded<F>(columns), lanes = Lanes<F>::count;
    int64_t i = 0;
    for (; i + 3 < n; i += 4) {
        int64_t j = 0;
        for (; j + lanes < stride; j += 2 * lanes) {
            Vector<F> low[4] = {}, high[4] = {};
            for (int64_t k = 0; k < inner; ++k) {
                const Vector<F> first = load(b + k * stride + j), second = load(b + k * stride + j + lanes);
                for (int row = 0; row < 4; ++row) {
                    const F factor = a[(i + row) * a_stride + k];
                    low[row] += factor * first;
                    high[row] += factor * second;
                }
            }
            for (int row = 0; row < 4; ++row) {
                F* to = out + (i + row) * stride + j;
                store(to, load(to) + scale * low[row]);
                store(to + lanes, load(to + lanes) + scale * high[row]);
            }
        }
        for (; j < stride; j += lanes) {
            Vector<F> total[4] = {};
            for (int64_t k = 0; k < inner; ++k) {
                const Vector<F> first = load(b + k * stride + j);
                for (int row = 0; row < 4; ++row) total[row] += a[(i + row) * a_stride + k] * first;
            }
            for (int row = 0; row < 4; ++row) {
                F* to = out + (i + row) * stride + j;
                store(to, load(to) + scale * total[row]);
            }
        }
    }
    for (; i < n; ++i)
        for (int64_t j = 0; j < stride; j += lanes) {
            Vector<F> total{};
            for (int64_t k = 0; k < inner; ++k) total += a[i * a_stride + k] * load(b + k * stride + j);
            store(out + i * stride + j, load(out + i * stride + j) + scale * total);
        }
}

// As distinct_columns, for the rows of an (n, n) matrix.
template <class F> inline int64_t distinct_rows(const F* matrix, int64_t n, int64_t at_least) {
    int64_t rows = n;
    for (; rows > at_least; --rows)
        if (!std::equal(matrix + (rows - 2) * n, matrix + (rows - 1) * n, matrix + (rows - 1) * n)) return rows;
    return rows;
}

// How many target nodes count: up to the first of those at the end without mass in the form that are alike in all it
// says of them, as padding is. They are worked on as one that stands for them.
template <class F>
inline int64_t distinct_targets(const Form<F>& form, int64_t sample, int64_t n, const F* start, const F* log_start) {
    const int64_t square = n * n;
    const F* mask = form.mask + sample * n;
    int64_t columns = n;
    while (columns > 1 && mask[columns - 1] == 0 && mask[columns - 2] == 0) --columns;
    const auto columns_of = [&](const F* matrix) { columns = distinct_columns(matrix, n, n, columns); };
    const auto rows_of = [&](const F* matrix) { columns = distinct_rows(matrix, n, columns); };
    columns_of(form.linear + sample * square);
    columns_of(start + sample * square);
    columns_of(log_start + sample * square);
    for (int64_t c = 0; c < form.channels; ++c) {
        columns_of(form.right + (sample * form.channels + c) * square);
        rows_of(form.right + (sample * form.channels + c) * square);
    }
    if (form.target_cost) columns_of(form.target_cost + sample * square);  // symmetric
    return columns;
}

template <class F> class Descent {
  public:
    static int64_t scratch(int64_t n, int64_t channels) {
        return Scaling<F>::scratch(n) + (7 + channels) * n * padded<F>(n) + 8 * padded<F>(n);
    }

    Descent(const Form<F>& form, int64_t n, Scratch<F>& memory)
        : form_(form), n_(n), rows_(padded<F>(n)), columns_(n), stride_(rows_), scaling_(n, memory), plan_(memory.take(n * stride_)),
          log_plan_(memory.take(n * stride_)), gradient_(memory.take(n * stride_)), moved_(memory.take(n * stride_)),
          pair_cost_(memory.take(n * stride_)), target_cost_(memory.take(n * stride_)),
          next_(memory.take(n * stride_)), right_(memory.take(form.channels * n * stride_)), mask_(memory.take(n)),
          mass_(memory.take(n)), row_(memory.take(n)), log_masses_(memory.take(n)), log_row_(memory.take(n)) {}

    // Steps until one moves less than `tolerance` of the mass, `outer` at most; returns how many, negative if none did.
    int64_t run(int64_t sample, const F* start, const F* log_start, F step_size, int64_t outer, int64_t inner,
                F tolerance) {
        const int64_t square = n_ * n_;
        shape(distinct_targets(form_, sample, n_, start, log_start));
        pack(start + sample * square, n_, n_, columns_, F(0), plan_);
        pack(log_start + sample * square, n_, n_, columns_, F(0), log_plan_);
        for (int64_t last = columns_ - 1; last < n_ * stride_; last += stride_) {
            plan_[last] *= F(n_ - columns_ + 1);
            log_plan_[last] += log_masses_[columns_ - 1];
        }
        pack(form_.pair_cost + sample * square, n_, n_, n_, F(0), pair_cost_);
        if (form_.target_cost) pack(form_.target_cost + sample * square, columns_, n_, columns_, F(0), target_cost_);
        for (int64_t c = 0; c < form_.channels; ++c) {
            const F* matrix = form_.right + (sample * form_.channels + c) * square;
            pack(matrix, columns_, n_, columns_, F(0), right_ + c * columns_ * stride_);
        }
        pack(form_.mask + sample * n_, 1, n_, columns_, F(0), mask_);
        for (int64_t step = 1; step <= outer; ++step) {
            gradient(sample);
            for (int64_t i = 0; i < n_; ++i) {
                F* kernel = scaling_.kernel + i * stride_;
                for (int64_t j = 0; j < stride_; j += Lanes<F>::count)
                    store(kernel + j, load(log_plan_ + i * stride_ + j) - load(gradient_ + i * stride_ + j) * step_size);
                std::fill(kernel + columns_, kernel + stride_, -std::numeric_limits<F>::infinity());
            }
            for (int64_t half = 0; half < inner; ++half) {
                half ? scaling_.row_step() : scaling_.start();
                scaling_.column_step();
            }
            scaling_.averaged(next_, stride_, log_row_);
            if (adopt() < tolerance * n_) return step;
        }
        return -outer;
    }

    void write(F* plan, F* log_row, F* log_column) const {
        for (int64_t i = 0; i < n_; ++i) std::copy_n(plan_ + i * stride_, columns_, plan + i * n_);
        share_copies(plan, n_, n_, columns_);
        std::copy_n(log_row_, n_, log_row);
        std::copy_n(scaling_.g, columns_, log_column);
        repeat_copies(log_column, n_, columns_);
    }

  private:
    // The number of columns, the last of which stands for the rest of n.
    void shape(int64_t columns) {
        columns_ = columns;
        stride_ = padded<F>(columns);
        scaling_.shape(columns);
        std::fill(log_masses_, log_masses_ + stride_, F(0));
        log_masses_[columns - 1] = std::log(F(n_ - columns + 1));
    }

    // linear + Q(T), see QuadraticForm.operator
    void gradient(int64_t sample) {
        const int64_t lanes = Lanes<F>::count, square = n_ * n_;
        pack(form_.linear + sample * square, n_, n_, columns_, F(0), gradient_);
        for (int64_t i = 0; i < n_; ++i) mass_[i] = dot(plan_ + i * stride_, mask_, stride_);
        column_sums(pair_cost_, mass_, n_, n_, row_);  // pair_cost is symmetric
        for (int64_t i = 0; i < n_; ++i)
            for (int64_t j = 0; j < stride_; j += lanes) {
                F* to = gradient_ + i * stride_ + j;
                store(to, load(to) + row_[i] * load(mask_ + j));
            }
        for (int64_t c = 0; c < form_.channels; ++c) {
            std::fill(moved_, moved_ + n_ * stride_, F(0));
            const F* right = right_ + c * columns_ * stride_;
            add_product(plan_, stride_, right, n_, columns_, columns_, F(1), moved_);
            const int64_t width = form_.channels * n_;
            const F* left = form_.left + sample * n_ * width + c * n_;
            add_product(left, width, moved_, n_, n_, columns_, F(-1), gradient_);
        }
        if (form_.self_loops_excluded) {
            std::fill(moved_, moved_ + n_ * stride_, F(0));
            add_product(pair_cost_, rows_, plan_, n_, n_, columns_, F(1), moved_);
            for (int64_t i = 0; i < n_; ++i)
                for (int64_t j = 0; j < stride_; j += lanes) {
                    F* to = gradient_ + i * stride_ + j;
                    const Vector<F> w = load(mask_ + j);
                    store(to, load(to) - load(moved_ + i * stride_ + j) * w * w);
                }
        }
        if (form_.target_cost) {
            std::fill(mass_, mass_ + n_, F(1));
            column_sums(plan_, mass_, n_, columns_, row_);
            column_sums(target_cost_, row_, columns_, columns_, mass_);
            for (int64_t i = 0; i < n_; ++i)
                for (int64_t j = 0; j < stride_; j += lanes) {
                    F* to = gradient_ + i * stride_ + j;
                    store(to, load(to) + load(mass_ + j));
                }
            if (form_.self_loops_excluded) {
                add_product(plan_, stride_, target_cost_, n_, columns_, columns_, F(-1), gradient_);
            }
        }
    }

    // The next plan and its logarithm become the current ones; returns how much mass moved.
    F adopt() {
        const int64_t lanes = Lanes<F>::count;
        Vector<F> total{};
        for (int64_t i = 0; i < n_; ++i) {
            std::fill(next_ + i * stride_ + columns_, next_ + (i + 1) * stride_, F(0));
            for (int64_t j = 0; j < stride_; j += lanes) {
                const Vector<F> change = load(next_ + i * stride_ + j) - load(plan_ + i * stride_ + j);
                total += larger<F>(change, -change);
                // An entry is at most 1, times its copies; more is rounding.
                const Vector<F> log = load(scaling_.kernel + i * stride_ + j) + log_row_[i] + load(scaling_.g + j);
                const Vector<F> most = load(log_masses_ + j);
                store(log_plan_ + i * stride_ + j, log < most ? log : most);
            }
            std::fill(log_plan_ + i * stride_ + columns_, log_plan_ + (i + 1) * stride_, F(0));
        }
        std::swap(plan_, next_);
        return sum<F>(total);
    }

    const Form<F> form_;
    int64_t n_, rows_, columns_, stride_;
    Scaling<F> scaling_;
    F *plan_, *log_plan_, *gradient_, *moved_, *pair_cost_, *target_cost_, *next_, *right_, *mask_, *mass_, *row_,
        *log_masses_, *log_row_;
};

template <class F>
void mirror_descent(const Form<F>& form, const F* start, const F* log_start, int64_t batch, int64_t n, F step_size,
                    int64_t outer, int64_t inner, F tolerance, int64_t threads, F* plan, F* log_row, F* log_column,
                    int64_t* taken) {
    for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(Descent<F>::scratch(n, form.channels));
        auto descent = std::make_shared<Descent<F>>(form, n, *memory);
        return [=, keep = memory](int64_t sample) {
            taken[sample] = descent->run(sample, start, log_start, step_size, outer, inner, tolerance);
            descent->write(plan + sample * n * n, log_row + sample * n, log_column + sample * n);
        };
    });
}

}  // namespace graphwright
