// Mirror descent on a quadratic form, one sample at a time: plan, kernel and form stay in the cache.
#pragma once

#include "form.hpp"

namespace graphwright {

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
        return Scaling<F>::scratch(n) + Operator<F>::scratch(n, channels) + 4 * n * padded<F>(n) + 2 * padded<F>(n);
    }

    Descent(const Form<F>& form, int64_t n, Scratch<F>& memory)
        : form_(form), n_(n), columns_(n), stride_(padded<F>(n)), scaling_(n, memory), operator_(form, n, memory),
          plan_(memory.take(n * stride_)), log_plan_(memory.take(n * stride_)), gradient_(memory.take(n * stride_)),
          next_(memory.take(n * stride_)), log_masses_(memory.take(n)), log_row_(memory.take(n)) {}

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
        operator_.take(sample, columns_);
        for (int64_t step = 1; step <= outer; ++step) {
            operator_.gradient(plan_, gradient_);
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
    int64_t n_, columns_, stride_;
    Scaling<F> scaling_;
    Operator<F> operator_;
    F *plan_, *log_plan_, *gradient_, *next_, *log_masses_, *log_row_;
};

template <class F>
bool mirror_descent(const Form<F>& form, const F* start, const F* log_start, int64_t batch, int64_t n, F step_size,
                    int64_t outer, int64_t inner, F tolerance, int64_t threads, F* plan, F* log_row, F* log_column,
                    int64_t* taken) {
    return for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(Descent<F>::scratch(n, form.channels));
        auto descent = std::make_shared<Descent<F>>(form, n, *memory);
        return [=, keep = memory](int64_t sample) {
            taken[sample] = descent->run(sample, start, log_start, step_size, outer, inner, tolerance);
            descent->write(plan + sample * n * n, log_row + sample * n, log_column + sample * n);
        };
    });
}

}  // namespace graphwright
