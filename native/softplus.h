// The dendritic tree with softplus. Its derivative is no bit, so the backward pass computes every step's activations
// again, one tile of trials at a time.
#pragma once

#include "block.h"

namespace lapsus::LAPSUS_ISA {

template <class T> struct Softplus {
    using S = Simd<T>;
    using V = typename S::Vector;
    static constexpr int width = S::width;
    static constexpr int tile = 16;
    static constexpr int vectors = tile / width;

    static Index row(const Problem<T> &p) { return (p.units + width - 1) / width * width; }
    static Index prepared_size(const Problem<T> &) { return 16; }
    static void prepare(const Problem<T> &, Index, bool, T *) {}
    static Index scratch_size(const Problem<T> &p) {
        Index rates = (5 * p.units + 2 * p.responses) * 64 + 64 * row(p);
        return (rates + 2 * tile * p.all_nodes() + 64 * 16) * sizeof(T);
    }

    // exp(y) for y <= 0.
    static V exponential(V y) {
        constexpr bool single = sizeof(T) == 4;
        const V lowest_argument = S::splat(single ? T(-87) : T(-708));
        y = y < lowest_argument ? lowest_argument : y;
        const T shift = single ? T(12582912) : T(6755399441055744); // 1.5 * 2^23 or 2^52: adding it rounds
        const V k = (y * T(1.4426950408889634074) + shift) - shift;
        // ln 2 in two parts, of which the first has so few digits that its product with k is exact.
        const V f = (y - k * (single ? T(0.693359375) : T(6.93145751953125e-1))) -
                    k * (single ? T(-2.12194440054690583e-4) : T(1.42860682030941723212e-6));
        constexpr int degree = single ? 7 : 13;
        V power = S::splat(T(1));
        for (int i = degree; i >= 1; --i) power = power * f * T(1.0 / i) + T(1);
        V scale;
        if constexpr (single) {
            typedef std::int32_t Int __attribute__((vector_size(vector_bytes)));
            scale = (V)((__builtin_convertvector(k, Int) + 127) << 23);
        } else {
            typedef std::int64_t Int __attribute__((vector_size(vector_bytes)));
            scale = (V)((__builtin_convertvector(k, Int) + 1023) << 52);
        }
        return power * scale;
    }

    // log(1 + e) for 0 <= e <= 1, as 2 atanh(e / (2 + e)).
    static V log_one_plus(V e) {
        const V z = e / (T(2) + e), square = z * z;
        constexpr int terms = sizeof(T) == 4 ? 8 : 17;
        V sum{};
        for (int i = terms; i >= 0; --i) sum = sum * square + T(2.0 / (2 * i + 1));
        return sum * z;
    }

    // Above 20 softplus is the identity, as in torch.
    static void activate(V x, V &value, V &slope) {
        const V zero{}, one = S::splat(T(1)), magnitude = x < zero ? -x : x;
        const V e = exponential(-magnitude), positive = x < zero ? zero : x;
        value = positive + log_one_plus(e);
        slope = (x < zero ? e : one) / (one + e);
        const V limit = S::splat(T(20));
        value = x > limit ? x : value;
        slope = x > limit ? one : slope;
    }

    // Activations and slopes of every node for the tile that starts at `lane`; h and slope are [all nodes, tile].
    static void tree(const BlockView<T> &view, Index step, Index lane, const Index *lane_condition, const T *r, T *h, T *slope) {
        const Problem<T> &p = view.p;
        const Index time = p.time_index[step], drive = p.drive_index[step];
        for (Index leaf = 0; leaf < p.nodes[0]; ++leaf) {
            V x[vectors];
            for (V &v : x) v = S::splat(p.bias[0][time * p.nodes[0] + leaf]);
            const T *w = p.leaf_weight + leaf * p.units;
            for (Index u = 0; u < p.units; ++u)
                for (int v = 0; v < vectors; ++v) x[v] += w[u] * S::load(r + 64 * u + lane + v * width);
            for (int v = 0; v < vectors; ++v) {
                if (drive >= 0)
                    for (int i = 0; i < width; ++i) {
                        const Index condition = view.span_first + lane_condition[lane + v * width + i];
                        x[v][i] += p.drive[(drive * p.conditions + condition) * p.nodes[0] + leaf];
                    }
                V value, s;
                activate(x[v], value, s);
                S::store(h + leaf * tile + v * width, value);
                S::store(slope + leaf * tile + v * width, s);
            }
        }
        for (Index a = 1; a < p.layers; ++a) {
            const T *below = h;
            h += p.nodes[a - 1] * tile;
            slope += p.nodes[a - 1] * tile;
            for (Index node = 0; node < p.nodes[a]; ++node)
                for (int v = 0; v < vectors; ++v) {
                    V x = S::splat(p.bias[a][time * p.nodes[a] + node]);
                    for (Index j = 0; j < p.children[a]; ++j) {
                        const Index child = node * p.children[a] + j;
                        x += p.branch_weight[a][child] * S::load(below + child * tile + v * width);
                    }
                    V value, s;
                    activate(x, value, s);
                    S::store(h + node * tile + v * width, value);
                    S::store(slope + node * tile + v * width, s);
                }
        }
    }

    static void conditions_of_lanes(const BlockView<T> &view, Index *lane_condition) {
        for (Index lane = 0; lane < 64; ++lane) lane_condition[lane] = view.span - 1;
        for (Index i = 0; i < view.span; ++i)
            for (Index lane = view.lane_begin(i); lane < view.lane_end(i); ++lane) lane_condition[lane] = i;
    }

    static void forward(const Problem<T> &p, const T *, Block block, char *scratch) {
        const BlockView<T> view(p, block);
        const Index n = p.units, nodes = p.all_nodes();
        Arena arena{scratch};
        T *r = arena.take<T>(64 * n), *F = arena.take<T>(64 * n), *noise = arena.take<T>(64 * n);
        T *forcing = arena.take<T>(64 * p.responses), *work = arena.take<T>(64 * p.responses);
        T *h = arena.take<T>(nodes * tile), *slope = arena.take<T>(nodes * tile);
        Index lane_condition[64];
        conditions_of_lanes(view, lane_condition);
        for (Index i = 0; i < 64 * n; ++i) F[i] = 0;
        T power[64];
        view.begin(r, power);
        for (Index step = 0; step < p.steps; ++step) {
            view.clamp_at(step, r, forcing, work);
            for (Index lane = 0; lane < block.count; lane += tile) {
                tree(view, step, lane, lane_condition, r, h, slope);
                for (Index k = 0; k < n; ++k)
                    std::memcpy(F + 64 * k + lane, h + (nodes - n + k) * tile, tile * sizeof(T));
            }
            view.advance(step, r, F, noise, power);
        }
    }

    static T total(const V *v) {
        T sum = 0;
        for (int i = 0; i < vectors; ++i)
            for (int j = 0; j < width; ++j) sum += v[i][j];
        return sum;
    }

    static void backward(const Problem<T> &p, const Gradients<T> &gradients, const T *, Block block, Sums<T> sums,
                         char *scratch) {
        const BlockView<T> view(p, block);
        const Index n = p.units, nodes = p.all_nodes(), stride = row(p);
        Arena arena{scratch};
        T *g = arena.take<T>(64 * n), *r = arena.take<T>(64 * n), *given = arena.take<T>(64);
        T *forcing = arena.take<T>(64 * p.responses), *work = arena.take<T>(64 * p.responses);
        T *rates = arena.take<T>(64 * stride), *in_r = arena.take<T>(tile * n);
        T *h = arena.take<T>(nodes * tile), *delta = arena.take<T>(nodes * tile);
        Index lane_condition[64];
        conditions_of_lanes(view, lane_condition);
        for (Index i = 0; i < 64 * n; ++i) g[i] = 0;
        for (Index i = 0; i < 64 * stride; ++i) rates[i] = 0;
        for (Index step = p.steps - 1; step >= 0; --step) {
            view.add_given(gradients, step + 1, g, given);
            view.read(p.trajectory + step * n * p.lanes(), n, r);
            view.clamp_at(step, r, forcing, work);
            transpose(r, n, 64, 64, rates, stride);
            for (Index lane = 0; lane < block.count; lane += tile) {
                tree(view, step, lane, lane_condition, r, h, delta);
                descend(view, step, lane, lane_condition, g, rates, stride, h, delta, sums, in_r);
                for (Index u = 0; u < n; ++u)
                    for (int i = 0; i < tile; ++i) {
                        T &to = g[64 * u + lane + i];
                        to = T(1 - p.alpha) * to + in_r[u * tile + i];
                    }
            }
            if (view.clamped(step)) view.clamp(g, nullptr, work);
        }
        view.add_given(gradients, 0, g, given);
        view.write(g, n, gradients.r0);
    }

    // From the gradient in the somata to everything else; delta comes in as slopes, leaves as gradients before the
    // non-linearity. Lanes beyond the block have g = 0 and so add nothing.
    static void descend(const BlockView<T> &view, Index step, Index lane, const Index *lane_condition, const T *g,
                        const T *rates, Index stride, const T *h, T *delta, Sums<T> sums, T *in_r) {
        const Problem<T> &p = view.p;
        const Index n = p.units, time = p.time_index[step], drive = p.drive_index[step], top = p.layers - 1;
        Index at = p.all_nodes() - n, bias_at = 0, child_at = 0;
        for (Index a = 0; a < top; ++a) bias_at += p.times * p.nodes[a], child_at += p.nodes[a];
        for (Index k = 0; k < n; ++k)
            for (int v = 0; v < vectors; ++v) {
                T *d = delta + (at + k) * tile + v * width;
                S::store(d, T(p.alpha) * S::load(g + 64 * k + lane + v * width) * S::load(d));
            }
        for (Index a = top;; --a) {
            const Index below = a ? at - p.nodes[a - 1] : 0;
            if (a) child_at -= p.nodes[a - 1];
            for (Index node = 0; node < p.nodes[a]; ++node) {
                V d[vectors];
                for (int v = 0; v < vectors; ++v) d[v] = S::load(delta + (at + node) * tile + v * width);
                sums.bias[bias_at + time * p.nodes[a] + node] += total(d);
                for (Index j = 0; a && j < p.children[a]; ++j) {
                    const Index child = node * p.children[a] + j;
                    V product[vectors];
                    for (int v = 0; v < vectors; ++v) {
                        T *under = delta + (below + child) * tile + v * width;
                        product[v] = d[v] * S::load(h + (below + child) * tile + v * width);
                        S::store(under, p.branch_weight[a][child] * d[v] * S::load(under));
                    }
                    sums.child[child_at + child] += total(product);
                }
            }
            if (!a) break;
            at = below;
            bias_at -= p.times * p.nodes[a - 1];
        }
        for (Index i = 0; i < n * tile; ++i) in_r[i] = 0;
        for (Index leaf = 0; leaf < p.nodes[0]; ++leaf) {
            const T *d = delta + leaf * tile, *w = p.leaf_weight + leaf * n;
            for (Index u = 0; u < n; ++u)
                for (int v = 0; v < vectors; ++v) {
                    T *to = in_r + u * tile + v * width;
                    S::store(to, S::load(to) + w[u] * S::load(d + v * width));
                }
            for (Index u = 0; u < stride; u += width) {
                V sum = S::load(sums.leaf + leaf * stride + u);
                for (int i = 0; i < tile; ++i) sum += d[i] * S::load(rates + (lane + i) * stride + u);
                S::store(sums.leaf + leaf * stride + u, sum);
            }
            if (drive >= 0)
                for (int i = 0; i < tile && lane + i < view.block.count; ++i)
                    sums.drive[(drive * view.span + lane_condition[lane + i]) * p.nodes[0] + leaf] += d[i];
        }
    }
};

} // namespace lapsus::LAPSUS_ISA
