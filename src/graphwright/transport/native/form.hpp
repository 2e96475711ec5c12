// The quadratic form of a matching problem, applied to plans of one sample that stay in the cache.
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

// linear + Q(T) of one sample, see QuadraticForm.operator. Plans and results are padded to the columns that count, the
// last of which may stand for copies of it.
template <class F> class Operator {
  public:
    static int64_t scratch(int64_t n, int64_t channels) {
        return (3 + channels) * n * padded<F>(n) + 3 * padded<F>(n);
    }

    Operator(const Form<F>& form, int64_t n, Scratch<F>& memory)
        : form_(form), n_(n), rows_(padded<F>(n)), columns_(n), stride_(rows_), moved_(memory.take(n * rows_)),
          pair_cost_(memory.take(n * rows_)), target_cost_(memory.take(n * rows_)),
          right_(memory.take(form.channels * n * rows_)), mask_(memory.take(n)), mass_(memory.take(n)),
          row_(memory.take(n)) {}

    void take(int64_t sample, int64_t columns) {
        const int64_t square = n_ * n_;
        sample_ = sample;
        columns_ = columns;
        stride_ = padded<F>(columns);
        pack(form_.pair_cost + sample * square, n_, n_, n_, F(0), pair_cost_);
        if (form_.target_cost) pack(form_.target_cost + sample * square, columns, n_, columns, F(0), target_cost_);
        for (int64_t c = 0; c < form_.channels; ++c) {
            const F* matrix = form_.right + (sample * form_.channels + c) * square;
            pack(matrix, columns, n_, columns, F(0), right_ + c * columns * stride_);
        }
        pack(form_.mask + sample * n_, 1, n_, columns, F(0), mask_);
    }

    void gradient(const F* plan, F* out) {
        const int64_t lanes = Lanes<F>::count, square = n_ * n_;
        pack(form_.linear + sample_ * square, n_, n_, columns_, F(0), out);
        for (int64_t i = 0; i < n_; ++i) mass_[i] = dot(plan + i * stride_, mask_, stride_);
        column_sums(pair_cost_, mass_, n_, n_, row_);  // pair_cost is symmetric
        for (int64_t i = 0; i < n_; ++i)
            for (int64_t j = 0; j < stride_; j += lanes) {
                F* to = out + i * stride_ + j;
                store(to, load(to) + row_[i] * load(mask_ + j));
            }
        for (int64_t c = 0; c < form_.channels; ++c) {
            std::fill(moved_, moved_ + n_ * stride_, F(0));
            const F* right = right_ + c * columns_ * stride_;
            add_product(plan, stride_, right, n_, columns_, columns_, F(1), moved_);
            const int64_t width = form_.channels * n_;
            const F* left = form_.left + sample_ * n_ * width + c * n_;
            add_product(left, width, moved_, n_, n_, columns_, F(-1), out);
        }
        if (form_.self_loops_excluded) {
            std::fill(moved_, moved_ + n_ * stride_, F(0));
            add_product(pair_cost_, rows_, plan, n_, n_, columns_, F(1), moved_);
            for (int64_t i = 0; i < n_; ++i)
                for (int64_t j = 0; j < stride_; j += lanes) {
                    F* to = out + i * stride_ + j;
                    const Vector<F> w = load(mask_ + j);
                    store(to, load(to) - load(moved_ + i * stride_ + j) * w * w);
                }
        }
        if (form_.target_cost) {
            std::fill(mass_, mass_ + n_, F(1));
            column_sums(plan, mass_, n_, columns_, row_);
            column_sums(target_cost_, row_, columns_, columns_, mass_);
            for (int64_t i = 0; i < n_; ++i)
                for (int64_t j = 0; j < stride_; j += lanes) {
                    F* to = out + i * stride_ + j;
                    store(to, load(to) + load(mass_ + j));
                }
            if (form_.self_loops_excluded) {
                add_product(plan, stride_, target_cost_, n_, columns_, columns_, F(-1), out);
            }
        }
    }

  private:
    const Form<F> form_;
    int64_t n_, rows_, columns_, stride_, sample_ = 0;
    F *moved_, *pair_cost_, *target_cost_, *right_, *mask_, *mass_, *row_;
};

}  // namespace graphwright
