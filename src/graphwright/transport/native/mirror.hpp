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

// out += scale * (a b): a (n, n) of any row stride, b and out (n, n) padded.
template <class F> inline void add_product(const F* a, int64_t a_stride, const F* b, int64_t n, F scale, F* out) {
    const int64_t stride = padded<F>(n), lanes = Lanes<F>::count;
    int64_t i = 0;
    for (; i + 3 < n; i += 4) {
        int64_t j = 0;
        for (; j + lanes < stride; j += 2 * lanes) {
            Vector<F> low[4] = {}, high[4] = {};
            for (int64_t k = 0; k < n; ++k) {
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
            for (int64_t k = 0; k < n; ++k) {
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
            for (int64_t k = 0; k < n; ++k) total += a[i * a_stride + k] * load(b + k * stride + j);
            store(out + i * stride + j, load(out + i * stride + j) + scale * total);
        }
}

template <class F> class Descent {
  public:
    static int64_t scratch(int64_t n, int64_t channels) {
        return Scaling<F>::scratch(n) + (7 + channels) * n * padded<F>(n) + 8 * padded<F>(n);
    }

    Descent(const Form<F>& form, int64_t n, Scratch<F>& memory)
        : form_(form), n_(n), stride_(padded<F>(n)), scaling_(n, memory), plan_(memory.take(n * stride_)),
          log_plan_(memory.take(n * stride_)), gradient_(memory.take(n * stride_)), moved_(memory.take(n * stride_)),
          pair_cost_(memory.take(n * stride_)), target_cost_(memory.take(n * stride_)),
          next_(memory.take(n * stride_)), right_(memory.take(form.channels * n * stride_)), mask_(memory.take(n)),
          mass_(memory.take(n)), row_(memory.take(n)), column_(memory.take(n)), log_row_(memory.take(n)) {}

    // Steps until one moves less than `tolerance` of the mass, `outer` at most; returns how many, negative if none did.
    int64_t run(int64_t sample, const F* start, const F* log_start, F step_size, int64_t outer, int64_t inner,
                F tolerance) {
        const int64_t square = n_ * n_;
        pack(start + sample * square, n_, n_, F(0), plan_);
        pack(log_start + sample * square, n_, n_, F(0), log_plan_);
        pack(form_.pair_cost + sample * square, n_, n_, F(0), pair_cost_);
        if (form_.target_cost) pack(form_.target_cost + sample * square, n_, n_, F(0), target_cost_);
        pack(form_.right + sample * form_.channels * square, form_.channels * n_, n_, F(0), right_);
        pack(form_.mask + sample * n_, 1, n_, F(0), mask_);
        std::fill(column_, column_ + stride_, F(0));
        for (int64_t step = 1; step <= outer; ++step) {
            gradient(sample);
            for (int64_t i = 0; i < n_; ++i) {
                F* kernel = scaling_.kernel + i * stride_;
                for (int64_t j = 0; j < stride_; j += Lanes<F>::count)
                    store(kernel + j, load(log_plan_ + i * stride_ + j) - load(gradient_ + i * stride_ + j) * step_size);
                std::fill(kernel + n_, kernel + stride_, -std::numeric_limits<F>::infinity());
            }
            for (int64_t half = 0; half < inner; ++half) {
                half ? scaling_.row_step() : scaling_.start(zero());
                scaling_.column_step();
            }
            scaling_.averaged(next_, stride_, log_row_);
            if (adopt() < tolerance * n_) return step;
        }
        return -outer;
    }

    const F* plan_row(int64_t i) const { return plan_ + i * stride_; }
    const F* log_row() const { return log_row_; }
    const F* log_column() const { return scaling_.g; }

  private:
    const F* zero() const { return column_; }

    // linear + Q(T), see QuadraticForm.operator
    void gradient(int64_t sample) {
        const int64_t lanes = Lanes<F>::count, square = n_ * n_;
        pack(form_.linear + sample * square, n_, n_, F(0), gradient_);
        for (int64_t i = 0; i < n_; ++i) mass_[i] = dot(plan_ + i * stride_, mask_, stride_);
        column_sums(pair_cost_, mass_, n_, row_);  // pair_cost is symmetric
        for (int64_t i = 0; i < n_; ++i)
            for (int64_t j = 0; j < stride_; j += lanes) {
                F* to = gradient_ + i * stride_ + j;
                store(to, load(to) + row_[i] * load(mask_ + j));
            }
        for (int64_t c = 0; c < form_.channels; ++c) {
            std::fill(moved_, moved_ + n_ * stride_, F(0));
            add_product(plan_, stride_, right_ + c * n_ * stride_, n_, F(1), moved_);
            const int64_t width = form_.channels * n_;
            add_product(form_.left + sample * n_ * width + c * n_, width, moved_, n_, F(-1), gradient_);
        }
        if (form_.self_loops_excluded) {
            std::fill(moved_, moved_ + n_ * stride_, F(0));
            add_product(pair_cost_, stride_, plan_, n_, F(1), moved_);
            for (int64_t i = 0; i < n_; ++i)
                for (int64_t j = 0; j < stride_; j += lanes) {
                    F* to = gradient_ + i * stride_ + j;
                    const Vector<F> w = load(mask_ + j);
                    store(to, load(to) - load(moved_ + i * stride_ + j) * w * w);
                }
        }
        if (form_.target_cost) {
            std::fill(mass_, mass_ + stride_, F(1));
            column_sums(plan_, mass_, n_, row_);
            column_sums(target_cost_, row_, n_, mass_);
            for (int64_t i = 0; i < n_; ++i)
                for (int64_t j = 0; j < stride_; j += lanes) {
                    F* to = gradient_ + i * stride_ + j;
                    store(to, load(to) + load(mass_ + j));
                }
            if (form_.self_loops_excluded) add_product(plan_, stride_, target_cost_, n_, F(-1), gradient_);
        }
    }

    // The next plan and its logarithm become the current ones; returns how much mass moved.
    F adopt() {
        const int64_t lanes = Lanes<F>::count;
        Vector<F> total{};
        for (int64_t i = 0; i < n_; ++i) {
            std::fill(next_ + i * stride_ + n_, next_ + (i + 1) * stride_, F(0));
            for (int64_t j = 0; j < stride_; j += lanes) {
                const Vector<F> change = load(next_ + i * stride_ + j) - load(plan_ + i * stride_ + j);
                total += larger<F>(change, -change);
                // An entry is at most 1; more is rounding.
                const Vector<F> log = load(scaling_.kernel + i * stride_ + j) + log_row_[i] + load(scaling_.g + j);
                store(log_plan_ + i * stride_ + j, log < F(0) ? log : Vector<F>{});
            }
            std::fill(log_plan_ + i * stride_ + n_, log_plan_ + (i + 1) * stride_, F(0));
        }
        std::swap(plan_, next_);
        return sum<F>(total);
    }

    const Form<F> form_;
    int64_t n_, stride_;
    Scaling<F> scaling_;
    F *plan_, *log_plan_, *gradient_, *moved_, *pair_cost_, *target_cost_, *next_, *right_, *mask_, *mass_, *row_,
        *column_, *log_row_;
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
            for (int64_t i = 0; i < n; ++i)
                std::copy(descent->plan_row(i), descent->plan_row(i) + n, plan + (sample * n + i) * n);
            std::copy(descent->log_row(), descent->log_row() + n, log_row + sample * n);
            std::copy(descent->log_column(), descent->log_column() + n, log_column + sample * n);
        };
    });
}

}  // namespace graphwright
