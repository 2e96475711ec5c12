// Pairwise L1 distances without an (n, m, d) intermediate.
#pragma once

#include "lanes.hpp"

namespace graphwright {

template <class F> inline Vector<F> magnitude(Vector<F> x) { return larger<F>(x, -x); }

// distances: (batch, n, m) of x (batch, n, d) and y (batch, m, d)
template <class F>
void l1_forward(const F* x, const F* y, int64_t batch, int64_t n, int64_t m, int64_t d, int64_t threads,
                F* distances) {
    const int64_t lanes = Lanes<F>::count, whole = d / lanes * lanes;
    for_each_sample(batch, threads, [=] {
        return [=](int64_t sample) {
            for (int64_t i = 0; i < n; ++i) {
                const F* left = x + (sample * n + i) * d;
                F* out = distances + (sample * n + i) * m;
                int64_t j = 0;
                for (; j + 3 < m; j += 4) {
                    const F* right = y + (sample * m + j) * d;
                    Vector<F> total[4] = {};
                    for (int64_t k = 0; k < whole; k += lanes) {
                        const Vector<F> here = load_unaligned(left + k);
                        for (int64_t c = 0; c < 4; ++c)
                            total[c] += magnitude<F>(here - load_unaligned(right + c * d + k));
                    }
                    for (int64_t c = 0; c < 4; ++c) {
                        F rest = 0;
                        for (int64_t k = whole; k < d; ++k) rest += std::abs(left[k] - right[c * d + k]);
                        out[j + c] = sum<F>(total[c]) + rest;
                    }
                }
                for (; j < m; ++j) {
                    const F* right = y + (sample * m + j) * d;
                    Vector<F> total{};
                    for (int64_t k = 0; k < whole; k += lanes)
                        total += magnitude<F>(load_unaligned(left + k) - load_unaligned(right + k));
                    F rest = 0;
                    for (int64_t k = whole; k < d; ++k) rest += std::abs(left[k] - right[k]);
                    out[j] = sum<F>(total) + rest;
                }
            }
        };
    });
}

// x_gradient_i = sum_j G_ij sign(x_i - y_j), y_gradient_j = -sum_i G_ij sign(x_i - y_j); the sign of 0 is 0.
template <class F>
void l1_backward(const F* x, const F* y, const F* gradient, int64_t batch, int64_t n, int64_t m, int64_t d,
                 int64_t threads, F* x_gradient, F* y_gradient) {
    const int64_t lanes = Lanes<F>::count, whole = d / lanes * lanes;
    for_each_sample(batch, threads, [=] {
        return [=](int64_t sample) {
            std::fill(y_gradient + sample * m * d, y_gradient + (sample + 1) * m * d, F(0));
            for (int64_t i = 0; i < n; ++i) {
                const F* left = x + (sample * n + i) * d;
                const F* weight = gradient + (sample * n + i) * m;
                F* to_left = x_gradient + (sample * n + i) * d;
                for (int64_t k = 0; k < whole; k += lanes) {
                    const Vector<F> here = load_unaligned(left + k);
                    Vector<F> total{};
                    for (int64_t j = 0; j < m; ++j) {
                        const int64_t at = (sample * m + j) * d + k;
                        const Vector<F> difference = here - load_unaligned(y + at);
                        const Vector<F> none{}, signed_weight = weight[j] - none;
                        const Vector<F> part =
                            difference > none ? signed_weight : (difference < none ? -signed_weight : none);
                        total += part;
                        const Vector<F> to_right = load_unaligned(y_gradient + at) - part;
                        std::memcpy(y_gradient + at, &to_right, sizeof to_right);
                    }
                    std::memcpy(to_left + k, &total, sizeof total);
                }
                for (int64_t k = whole; k < d; ++k) {
                    F total = 0;
                    for (int64_t j = 0; j < m; ++j) {
                        const int64_t at = (sample * m + j) * d + k;
                        const F difference = left[k] - y[at];
                        const F part = difference > 0 ? weight[j] : (difference < 0 ? -weight[j] : F(0));
                        total += part;
                        y_gradient[at] -= part;
                    }
                    to_left[k] = total;
                }
            }
        };
    });
}

}  // namespace graphwright
