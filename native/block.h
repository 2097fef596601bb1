// What both non-linearities share: reading and writing a block of trials, clamping, and the step itself.
#pragma once

#include "simd.h"

namespace lapsus::LAPSUS_ISA {

// Carves arrays out of the caller's scratch, each on its own cache lines.
struct Arena {
    char *at;
    template <class U> U *take(Index count) {
        U *p = reinterpret_cast<U *>(at);
        at += (count * Index(sizeof(U)) + 127) / 64 * 64;
        return p;
    }
};

template <class T> struct BlockView {
    using S = Simd<T>;
    using V = typename S::Vector;
    static constexpr int width = S::width;

    const Problem<T> &p;
    Block block;
    Index span_first, span; // conditions that the block touches

    BlockView(const Problem<T> &p, Block block) : p(p), block(block) {
        span_first = block.first / p.trials;
        span = (block.first + block.count - 1) / p.trials + 1 - span_first;
    }

    Word valid() const { return block.count == 64 ? ~Word(0) : (Word(1) << block.count) - 1; }

    // The lanes of the block's i-th condition.
    Index lane_begin(Index i) const {
        Index begin = (span_first + i) * p.trials - block.first;
        return begin < 0 ? 0 : begin;
    }
    Index lane_end(Index i) const {
        Index end = (span_first + i + 1) * p.trials - block.first;
        return end > block.count ? block.count : end;
    }

    // rows x 64, padded with zeros, from and to an array [rows, conditions, trials].
    void read(const T *array, Index rows, T *out) const {
        for (Index i = 0; i < rows; ++i) {
            std::memcpy(out + 64 * i, array + i * p.lanes() + block.first, block.count * sizeof(T));
            for (Index lane = block.count; lane < 64; ++lane) out[64 * i + lane] = 0;
        }
    }
    void write(const T *in, Index rows, T *array) const {
        for (Index i = 0; i < rows; ++i)
            std::memcpy(array + i * p.lanes() + block.first, in + 64 * i, block.count * sizeof(T));
    }

    // r += W_x'(x - W_x r); without x, r -= W_x' W_x r, which is its own adjoint.
    void clamp(T *r, const T *x, T *work) const {
        for (Index d = 0; d < p.responses; ++d) {
            const T *w = p.readout + d * p.units;
            for (Index lane = 0; lane < 64; lane += width) {
                V error = x ? S::load(x + 64 * d + lane) : V{};
                for (Index u = 0; u < p.units; ++u) error -= w[u] * S::load(r + 64 * u + lane);
                S::store(work + 64 * d + lane, error);
            }
        }
        for (Index u = 0; u < p.units; ++u)
            for (Index lane = 0; lane < 64; lane += width) {
                V v = S::load(r + 64 * u + lane);
                for (Index d = 0; d < p.responses; ++d)
                    v += p.readout[d * p.units + u] * S::load(work + 64 * d + lane);
                S::store(r + 64 * u + lane, v);
            }
    }

    bool clamped(Index step) const { return step >= p.steps - p.forced; }

    // The rates that step acts on: r_step after clamping. forcing and work hold responses x 64 each.
    void clamp_at(Index step, T *r, T *forcing, T *work) const {
        if (!clamped(step)) return;
        Index row = step - (p.steps - p.forced);
        read(p.forcing + row * p.responses * p.lanes(), p.responses, forcing);
        clamp(r, forcing, work);
    }

    // The first rates, from where they are given. power holds 64.
    void begin(T *r, T *power) const {
        read(p.r0, p.units, r);
        for (Index lane = 0; lane < 64; ++lane) power[lane] = 0;
        keep(0, r, power);
    }

    // What is kept of r_step: the rates, what is read out of them, and their power.
    void keep(Index step, const T *r, T *power) const {
        write(r, p.units, p.trajectory + step * p.units * p.lanes());
        for (Index d = 0; p.x && d < p.responses; ++d) {
            T x[64] = {};
            for (Index u = 0; u < p.units; ++u)
                for (Index lane = 0; lane < 64; lane += width)
                    S::store(x + lane, S::load(x + lane) + p.readout[d * p.units + u] * S::load(r + 64 * u + lane));
            write(x, 1, p.x + (step * p.responses + d) * p.lanes());
        }
        for (Index u = 0; p.power && u < p.units; ++u)
            for (Index lane = 0; lane < 64; lane += width) {
                const V v = S::load(r + 64 * u + lane);
                S::store(power + lane, S::load(power + lane) + v * v);
            }
        if (p.power && step == p.steps) write(power, 1, p.power);
    }

    // Adds to g what the loss says of r_step itself, by way of the trajectory, of x and of the power. work holds 64.
    void add_given(const Gradients<T> &given, Index step, T *g, T *work) const {
        const Index n = p.units;
        for (Index u = 0; given.trajectory && u < n; ++u) {
            read(given.trajectory + (step * n + u) * p.lanes(), 1, work);
            for (Index lane = 0; lane < 64; lane += width) S::store(g + 64 * u + lane, S::load(g + 64 * u + lane) + S::load(work + lane));
        }
        for (Index d = 0; given.x && d < p.responses; ++d) {
            read(given.x + (step * p.responses + d) * p.lanes(), 1, work);
            for (Index u = 0; u < n; ++u)
                for (Index lane = 0; lane < 64; lane += width)
                    S::store(g + 64 * u + lane, S::load(g + 64 * u + lane) + p.readout[d * n + u] * S::load(work + lane));
        }
        if (!given.power) return;
        T r[64];
        read(given.power, 1, work);
        for (Index u = 0; u < n; ++u) {
            read(p.trajectory + (step * n + u) * p.lanes(), 1, r);
            for (Index lane = 0; lane < 64; lane += width)
                S::store(g + 64 * u + lane, S::load(g + 64 * u + lane) + T(2) * S::load(work + lane) * S::load(r + lane));
        }
    }

    // r' = (1 - alpha) r + alpha F + sigma noise, written over r, and kept.
    void advance(Index step, T *r, const T *F, T *noise, T *power) const {
        const T alpha = T(p.alpha), stays = T(1 - p.alpha), sigma = T(p.sigma[step]);
        read(p.noise + step * p.units * p.lanes(), p.units, noise);
        for (Index i = 0; i < 64 * p.units; i += width)
            S::store(r + i, stays * S::load(r + i) + alpha * S::load(F + i) + sigma * S::load(noise + i));
        keep(step + 1, r, power);
    }
};

} // namespace lapsus::LAPSUS_ISA
