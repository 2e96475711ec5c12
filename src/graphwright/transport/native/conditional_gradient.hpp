// Conditional gradient on a quadratic form, one sample at a time.
#pragma once

#include "assignment.hpp"
#include "form.hpp"

namespace graphwright {

template <class F> class FrankWolfe {
  public:
    static int64_t scratch(int64_t n, int64_t channels) {
        return Operator<F>::scratch(n, channels) + 4 * n * padded<F>(n);
    }

    FrankWolfe(const Form<F>& form, int64_t n, Scratch<F>& memory)
        : form_(form), n_(n), stride_(padded<F>(n)), operator_(form, n, memory), assignment_(n),
          plan_(memory.take(n * stride_)), gradient_(memory.take(n * stride_)), vertex_(memory.take(n * stride_)),
          turned_(memory.take(n * stride_)) {}

    // Steps until one gains less than `tolerance` of the objective, `most` at most; returns how many, negative if none
    // did, and 0 where a gradient is not finite.
    int64_t run(int64_t sample, const F* start, int64_t most, F tolerance) {
        const F* linear = form_.linear + sample * n_ * n_;
        pack(start + sample * n_ * n_, n_, n_, n_, F(0), plan_);
        operator_.take(sample, n_);
        operator_.gradient(plan_, gradient_);
        assignment_.forget();
        for (int64_t step = 1; step <= most; ++step) {
            if (!assign()) return 0;
            operator_.gradient(vertex_, turned_);
            // With G = linear + Q(T): the objective is <linear + G, T> / 2, and Q(vertex - T) = turned - G.
            double before = 0, slope = 0, curvature = 0;
            for (int64_t i = 0; i < n_; ++i)
                for (int64_t j = 0; j < n_; ++j) {
                    const int64_t at = i * stride_ + j;
                    const double direction = vertex_[at] - plan_[at];
                    before += (linear[i * n_ + j] + gradient_[at]) * double(plan_[at]);
                    slope += gradient_[at] * direction;
                    curvature += (turned_[at] - gradient_[at]) * direction;
                }
            before /= 2, curvature /= 2;
            const double inside = std::min(1.0, std::max(0.0, -slope / (2 * curvature)));
            const double length = curvature > 0 ? inside : double(slope + curvature < 0);
            const F moved = F(length);
            for (int64_t at = 0; at < n_ * stride_; ++at) {
                plan_[at] += moved * (vertex_[at] - plan_[at]);
                gradient_[at] += moved * (turned_[at] - gradient_[at]);
            }
            const double gain = -(length * slope + length * length * curvature);
            if (gain <= double(tolerance) * std::max(std::abs(before), double(tolerance))) return step;
        }
        return -most;
    }

    void write(F* plan, F* rows, F* columns) const {
        for (int64_t i = 0; i < n_; ++i) {
            std::copy_n(plan_ + i * stride_, n_, plan + i * n_);
            rows[i] = F(assignment_.row(i)), columns[i] = F(assignment_.column(i));
        }
    }

  private:
    // The vertex that the gradient points to; false if it points nowhere.
    bool assign() {
        double largest = 0;
        bool finite = true;
        for (int64_t i = 0; i < n_; ++i)
            for (int64_t j = 0; j < n_; ++j) {
                const double entry = assignment_.cost(i, j) = gradient_[i * stride_ + j];
                finite &= entry == entry;
                largest = std::max(largest, std::abs(entry));
            }
        if (!finite || largest > 1e300) return false;  // differences of larger ones are not finite
        if (!assignment_.solve()) return false;
        std::fill(vertex_, vertex_ + n_ * stride_, F(0));
        for (int64_t i = 0; i < n_; ++i) vertex_[i * stride_ + assignment_.column_of(i)] = 1;
        return true;
    }

    const Form<F> form_;
    int64_t n_, stride_;
    Operator<F> operator_;
    Assignment assignment_;
    F *plan_, *gradient_, *vertex_, *turned_;
};

template <class F>
bool conditional_gradient(const Form<F>& form, const F* start, int64_t batch, int64_t n, int64_t most, F tolerance,
                          int64_t threads, F* plan, F* rows, F* columns, int64_t* taken) {
    return for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(FrankWolfe<F>::scratch(n, form.channels));
        auto steps = std::make_shared<FrankWolfe<F>>(form, n, *memory);
        return [=, keep = memory](int64_t sample) {
            taken[sample] = steps->run(sample, start, most, tolerance);
            steps->write(plan + sample * n * n, rows + sample * n, columns + sample * n);
        };
    });
}

}  // namespace graphwright
