// Pairwise L1 distances without an (n, m, d) intermediate.
#pragma once

#include "lanes.hpp"

namespace graphwright {

template <class F> inline Vector<F> magnitude(Vector<F> x) { return larger<F>(x, -x); }

// distances: (batch, n, m) of x (batch, n, d) and the first counts (batch) of y (batch, m, d); 0 to the others
template <class F>
void l1_forward(const F* x, const F* y, const int64_t* counts, int64_t batch, int64_t n, int64_t m, int64_t d,
                int64_t threads, F* distances) {
    const int64_t lanes = Lanes<F>::count, whole = d / lanes * lanes;
    for_each_sample(batch, threads, [=] {
        return [=](int64_t sample) {
            const int64_t count = counts[sample];
            for (int64_t i = 0; i < n; ++i) {
                const F* left = x + (sample * n + i) * d;
                F* out = distances + (sample * n + i) * m;
                int64_t j = 0;
                for (; j + 3 < count; j += 4) {
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
                for (; j < count; ++j) {
                    const F* right = y + (sample * m + j) * d;
                    Vector<F> total{};
                    for (int64_t k = 0; k < whole; k += lanes)
                        total += magnitude<F>(load_unaligned(left + k) - load_unaligned(right + k));
                    F rest = 0;
                    for (int64_t k = whole; k < d; ++k) rest += std::abs(left[k] - right[k]);
                    out[j] = sum<F>(total) + rest;
                }
                std::fill(out + count, out + m, F(0));
            }
        };
    });
}

// x_gradient_i = sum_j G_ij sign(x_i - y_j), y_gradient_j = -sum_i G_ij sign(x_i - y_j); the sign of 0 is 0.
// A few dimensions at a time, with that slice of y and of its gradient side by side in the cache.
template <class F>
void l1_backward(const F* x, const F* y, const int64_t* counts, const F* gradient, int64_t batch, int64_t n,
                 int64_t m, int64_t d, int64_t threads, F* x_gradient, F* y_gradient) {
    const int64_t lanes = Lanes<F>::count;
    for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(2 * m * lanes);
        F *const slice = memory->take(m * lanes), *const to_slice = memory->take(m * lanes);
        return [=, keep = memory](int64_t sample) {
            const F* weights = gradient + sample * n * m;
            const int64_t count = counts[sample];
            F* to_y = y_gradient + sample * m * d;
            std::fill(to_y + count * d, to_y + m * d, F(0));
            for (int64_t k = 0; k < d; k += lanes) {
                const int64_t width = std::min(lanes, d - k);
                for (int64_t j = 0; j < count; ++j) {
                    store(slice + j * lanes, Vector<F>{});
                    store(to_slice + j * lanes, Vector<F>{});
                    std::copy_n(y + (sample * m + j) * d + k, width, slice + j * lanes);
                }
                for (int64_t i = 0; i < n; ++i) {
                    Vector<F> here{}, total{};
                    std::copy_n(x + (sample * n + i) * d + k, width, reinterpret_cast<F*>(&here));
                    for (int64_t j = 0; j < count; ++j) {
                        const Vector<F> there = load(slice + j * lanes), none{}, weight = all(weights[i * m + j]);
                        const Vector<F> part = (here > there ? weight : none) - (here < there ? weight : none);
                        total += part;
                        store(to_slice + j * lanes, load(to_slice + j * lanes) - part);
                    }
                    std::copy_n(reinterpret_cast<const F*>(&total), width, x_gradient + (sample * n + i) * d + k);
                }
                for (int64_t j = 0; j < count; ++j) std::copy_n(to_slice + j * lanes, width, to_y + j * d + k);
            }
        };
    });
}

}  // namespace graphwright
