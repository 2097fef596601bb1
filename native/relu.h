// The dendritic tree with ReLU.
//
// Forward: a tile of trials stays in registers from the rates to the soma; leaf activations never reach memory. Of
// every node one bit a trial is kept: whether the node and all nodes between it and the soma are above threshold.
//
// Backward: given those bits a unit's output is linear in the rates, so nothing is recomputed. With c_j = alpha g_k for
// the trials whose bit of leaf j (of unit k) is set and 0 elsewhere, and P_j the product of the weights from j to the
// soma,
//     gradient in r      = sum_k alpha g_k J_k,  J_k = sum of P_j W_j over the leaves whose bit is set,
//     gradient in W_j    = P_j sum over trials of c_j r,
//     gradient in b_j(q) = P_j sum over trials and steps with time q of c_j,
// and the gradients of the branch weights follow from these sums (finish_relu). Both sums over bits are made of table
// look-ups: four leaves (or four trials) have only 16 possible sums, so one addition does the work of four
// multiplications. Trials whose soma is silent are left out.
#pragma once

#include "block.h"

namespace lapsus::LAPSUS_ISA {

template <class T> struct Relu {
    using S = Simd<T>;
    using V = typename S::Vector;
    static constexpr int width = S::width;
    static constexpr int tile_vectors = width * 2 >= 8 ? 2 : 8 / width;
    static constexpr int tile = tile_vectors * width;
    static constexpr int max_leaves = (registers - tile_vectors - 2) / tile_vectors;

    // ---- layout of what is prepared once a rollout ----

    static Index row_vectors(const Problem<T> &p) { return (p.units + width - 1) / width; }
    static Index chunk_vectors(const Problem<T> &p) { return row_vectors(p) < 4 ? row_vectors(p) : 4; }
    static Index chunk(const Problem<T> &p) { return chunk_vectors(p) * width; }
    static Index chunks(const Problem<T> &p) { return (p.units + chunk(p) - 1) / chunk(p); }
    static Index row(const Problem<T> &p) { return chunks(p) * chunk(p); }
    static Index leaves(const Problem<T> &p) { return p.nodes[0] / p.units; }
    static Index quads(const Problem<T> &p) { return (leaves(p) + 3) / 4; }
    static Index table_size(const Problem<T> &p) { return quads(p) * 16 * chunk(p); }
    static Index packed_size(const Problem<T> &p) { return (p.nodes[0] * p.units + 31) / 16 * 16; }
    static Index prepared_size(const Problem<T> &p) { return packed_size(p) + p.units * chunks(p) * table_size(p); }

    // Leaves of one branch are worked on in runs of nearly equal length, none above max_leaves.
    static Index runs(Index branch) { return (branch + max_leaves - 1) / max_leaves; }
    static Index run_begin(Index branch, Index run) { return run * branch / runs(branch); }

    static void prepare(const Problem<T> &p, Index unit, bool gradients, T *prepared) {
        const Index n = p.units, branch = p.children[1], first = unit * leaves(p);
        for (Index node = first; node < first + leaves(p); node += branch)
            for (Index run = 0; run < runs(branch); ++run) {
                Index begin = node + run_begin(branch, run), end = node + run_begin(branch, run + 1);
                T *out = prepared + begin * n;
                for (Index u = 0; u < n; ++u)
                    for (Index leaf = begin; leaf < end; ++leaf) *out++ = p.leaf_weight[leaf * n + u];
            }
        if (!gradients) return;
        for (Index c = 0; c < chunks(p); ++c) {
            const Index size = chunk(p), base = c * size;
            T *table = prepared + packed_size(p) + (unit * chunks(p) + c) * table_size(p);
            for (Index quad = 0; quad < quads(p); ++quad, table += 16 * size) {
                for (Index u = 0; u < size; ++u) table[u] = 0;
                for (int bit = 0; bit < 4; ++bit) {
                    Index leaf = 4 * quad + bit;
                    T path = leaf < leaves(p) ? T(1) : T(0);
                    Index node = first + (leaf < leaves(p) ? leaf : 0);
                    const T *weight = p.leaf_weight + node * n;
                    for (Index a = 1; a < p.layers; ++a) {
                        path *= p.branch_weight[a][node];
                        node /= p.children[a];
                    }
                    for (int entry = 0; entry < 1 << bit; ++entry)
                        for (Index u = 0; u < size; ++u)
                            table[((1 << bit) + entry) * size + u] =
                                table[entry * size + u] + (base + u < n ? path * weight[base + u] : T(0));
                }
            }
        }
    }

    static Index scratch_size(const Problem<T> &p) {
        Index words = (leaves(p) + 63) / 64 + 1;
        Index rates = (4 * p.units + 2 * p.responses + p.layers) * 64 + 2 * 64 * row(p);
        Index tables = 16 * 16 * (chunk(p) + 1) + leaves(p);
        Index forward = 64 * p.nodes[0];
        return (rates + tables + forward) * sizeof(T) + (64 * words + leaves(p) + p.children[1] + 64) * sizeof(Word) + 64 * 128;
    }

    // ---- forward ----

    template <int G>
    static LAPSUS_INLINE void weigh(const T *w, const T *r, V (&acc)[G][tile_vectors]) {
        V rates[tile_vectors];
        for (int v = 0; v < tile_vectors; ++v) rates[v] = S::load(r + v * width);
        for (int j = 0; j < G; ++j)
            for (int v = 0; v < tile_vectors; ++v) acc[j][v] += w[j] * rates[v];
    }

    static unsigned bits_of(const V *v) {
        unsigned bits = 0;
        for (int i = 0; i < tile_vectors; ++i) bits |= S::positive(v[i]) << (i * width);
        return bits;
    }

    static void put_bits(Word *word, int at, unsigned bits) {
        std::memcpy(reinterpret_cast<char *>(word) + at * (tile / 8), &bits, tile / 8);
    }

    // What the leaves of one block of trials are given in one step.
    struct Input {
        const T *rates;              // [tiles, units, tile]
        const T *addend;             // [conditions of the block, leaves], or [leaves] where nothing is shown
        const Index *tile_condition; // row of addend for each tile, -1 where conditions meet within it
        const Index *lane_condition; // the same for each lane
        int tiles;
    };

    // A run of G leaves of one branch on all tiles: adds their weighted activations to sum [64].
    template <int G, bool Record>
    static __attribute__((noinline)) void leaf_run(const Problem<T> &p, const T *packed, const Input &in, Index leaf, T *sum, Word *words) {
        const T *weight = p.branch_weight[1] + leaf, *rates = in.rates;
        const Index n = p.units;
        for (int t = 0; t < in.tiles; ++t) {
            V acc[G][tile_vectors];
            const Index condition = in.tile_condition[t];
            if (condition >= 0) {
                const T *addend = in.addend + condition * p.nodes[0] + leaf;
                for (int j = 0; j < G; ++j)
                    for (int v = 0; v < tile_vectors; ++v) acc[j][v] = S::splat(addend[j]);
            } else {
                T addend[tile];
                for (int j = 0; j < G; ++j) {
                    for (int i = 0; i < tile; ++i)
                        addend[i] = in.addend[in.lane_condition[t * tile + i] * p.nodes[0] + leaf + j];
                    for (int v = 0; v < tile_vectors; ++v) acc[j][v] = S::load(addend + v * width);
                }
            }
            const T *w = packed;
            Index u = 0;
            for (; u + 4 <= n; u += 4, w += 4 * G, rates += 4 * tile) {
                weigh<G>(w, rates, acc);
                weigh<G>(w + G, rates + tile, acc);
                weigh<G>(w + 2 * G, rates + 2 * tile, acc);
                weigh<G>(w + 3 * G, rates + 3 * tile, acc);
            }
            for (; u < n; ++u, w += G, rates += tile) weigh<G>(w, rates, acc);
            V total[tile_vectors];
            for (int v = 0; v < tile_vectors; ++v) total[v] = S::load(sum + t * tile + v * width);
            for (int j = 0; j < G; ++j) {
                if constexpr (Record) put_bits(words + j, t, bits_of(acc[j]));
                for (int v = 0; v < tile_vectors; ++v) total[v] += weight[j] * S::relu(acc[j][v]);
            }
            for (int v = 0; v < tile_vectors; ++v) S::store(sum + t * tile + v * width, total[v]);
        }
    }

    template <bool Record, int G = max_leaves>
    static LAPSUS_INLINE void any_run(Index count, const Problem<T> &p, const T *packed, const Input &in, Index leaf, T *sum,
                                      Word *words) {
        if constexpr (G > 0) {
            if (count == G) leaf_run<G, Record>(p, packed, in, leaf, sum, words);
            else any_run<Record, G - 1>(count, p, packed, in, leaf, sum, words);
        }
    }

    template <bool Record>
    static void forward_block(const Problem<T> &p, const T *prepared, Block block, char *scratch) {
        const BlockView<T> view(p, block);
        const Index n = p.units, branch = p.children[1], top = p.layers - 1;
        const int tiles = int((block.count + tile - 1) / tile);
        Arena arena{scratch};
        T *r = arena.take<T>(64 * n), *F = arena.take<T>(64 * n), *tiled = arena.take<T>(64 * n);
        T *forcing = arena.take<T>(64 * p.responses), *work = arena.take<T>(64 * p.responses);
        T *up = arena.take<T>(64 * p.layers), *h = arena.take<T>(64);
        T *driven = arena.take<T>(view.span * p.nodes[0]);
        const Index run_count = runs(branch);
        Index *run_length = arena.take<Index>(run_count);
        for (Index run = 0; run < run_count; ++run) run_length[run] = run_begin(branch, run + 1) - run_begin(branch, run);

        // The one condition of each tile, or -1 where conditions meet.
        Index tile_condition[64], lane_condition[64], undriven[64] = {};
        for (Index i = 0; i < view.span; ++i)
            for (Index lane = view.lane_begin(i); lane < view.lane_end(i); ++lane) lane_condition[lane] = i;
        for (Index lane = block.count; lane < 64; ++lane) lane_condition[lane] = view.span - 1;
        for (int t = 0; t < tiles; ++t) {
            Index a = lane_condition[t * tile], b = lane_condition[t * tile + tile - 1];
            tile_condition[t] = a == b ? a : -1;
        }

        for (Index i = 0; i < 64 * n; ++i) F[i] = 0;
        T power[64];
        view.begin(r, power);
        for (Index step = 0; step < p.steps; ++step) {
            view.clamp_at(step, r, forcing, work);
            for (int t = 0; t < tiles; ++t)
                for (Index u = 0; u < n; ++u)
                    for (int i = 0; i < tile; ++i) tiled[(t * n + u) * tile + i] = r[64 * u + t * tile + i];

            const Index time = p.time_index[step], drive = p.drive_index[step];
            const T *bias = p.bias[0] + time * p.nodes[0];
            if (drive >= 0)
                for (Index i = 0; i < view.span; ++i) {
                    const T *from = p.drive + (drive * p.conditions + view.span_first + i) * p.nodes[0];
                    for (Index leaf = 0; leaf < p.nodes[0]; ++leaf)
                        driven[i * p.nodes[0] + leaf] = bias[leaf] + from[leaf];
                }
            Word *words = Record ? p.masks + (block.number * p.steps + step) * p.all_nodes() : nullptr;
            if (Record && tiles * tile < 64) std::memset(words, 0, p.all_nodes() * sizeof(Word));

            const Input in{tiled, drive < 0 ? bias : driven, drive < 0 ? undriven : tile_condition, lane_condition, tiles};
            const T *node_bias = p.bias[1] + time * p.nodes[1];
            for (Index node = 0, leaf = 0; node < p.nodes[1]; ++node) {
                for (int i = 0; i < tiles * tile; i += width) S::store(h + i, S::splat(node_bias[node]));
                for (Index run = 0; run < run_count; leaf += run_length[run++])
                    any_run<Record>(run_length[run], p, prepared + leaf * n, in, leaf, h, Record ? words + leaf : nullptr);
                for (int t = 0; t < tiles; ++t) {
                    V v[tile_vectors];
                    for (int i = 0; i < tile_vectors; ++i) {
                        v[i] = S::load(h + t * tile + i * width);
                        S::store(h + t * tile + i * width, S::relu(v[i]));
                    }
                    if constexpr (Record) put_bits(words + p.nodes[0] + node, t, bits_of(v));
                }
                rise<Record>(p, time, node, tiles, h, up, F, Record ? words + p.nodes[0] : nullptr);
            }
            if constexpr (Record) silence(p, top, view.valid(), words);
            view.advance(step, r, F, tiled, power);
        }
    }

    // Passes a finished node of layer 1 on towards the soma, finishing every node whose last child this was.
    template <bool Record>
    static void rise(const Problem<T> &p, Index time, Index node, int tiles, T *h, T *up, T *F, Word *words) {
        const int lanes = tiles * tile;
        for (Index a = 2; a < p.layers; ++a) {
            words = Record ? words + p.nodes[a - 1] : nullptr;
            const Index parent = node / p.children[a], child = node % p.children[a];
            const T weight = p.branch_weight[a][node];
            T *sum = up + 64 * a;
            const V bias = S::splat(p.bias[a][time * p.nodes[a] + parent]);
            for (int i = 0; i < lanes; i += width)
                S::store(sum + i, (child == 0 ? bias : S::load(sum + i)) + weight * S::load(h + i));
            if (child + 1 < p.children[a]) return;
            for (int t = 0; t < tiles; ++t) {
                V v[tile_vectors];
                for (int i = 0; i < tile_vectors; ++i) {
                    v[i] = S::load(sum + t * tile + i * width);
                    S::store(h + t * tile + i * width, S::relu(v[i]));
                }
                if constexpr (Record) put_bits(words + parent, t, bits_of(v));
            }
            node = parent;
        }
        for (int i = 0; i < lanes; i += width) S::store(F + 64 * node + i, S::load(h + i));
    }

    // A node whose parent is silent passes no gradient: its bit is cleared, from the soma outwards.
    static void silence(const Problem<T> &p, Index top, Word valid, Word *words) {
        Word *parents = words;
        for (Index a = 0; a < top; ++a) parents += p.nodes[a];
        for (Index k = 0; k < p.units; ++k) parents[k] &= valid;
        for (Index a = top; a >= 1; --a) {
            Word *nodes = parents - p.nodes[a - 1];
            for (Index i = 0; i < p.nodes[a]; ++i)
                for (Index j = 0; j < p.children[a]; ++j) nodes[i * p.children[a] + j] &= parents[i];
            parents = nodes;
        }
    }

    // ---- backward ----

    struct Workspace {
        T *tables; // [quads of trials, 16, chunk]: sums of alpha g r
        T *totals; // [quads of trials, 16]: sums of alpha g
        T *sums;   // [leaves] of c
    };

    // For the trials in `active` adds sum c r to leaf_sums and writes sum c of every leaf of the unit to totals.
    template <int N>
    static void weigh_trials(const Problem<T> &p, Index first_unit, const Word *words, Word active, const T *scaled,
                             const T *rates, Index stride, bool ones, T *leaf_sums, Workspace w) {
        const Index count = __builtin_popcountll(active), groups = (count + 3) / 4;
        Word rest = active;
        for (Index group = 0; group < groups; ++group) {
            T *table = w.tables + group * 16 * N * width, *total = w.totals + group * 16;
            V zero{};
            for (int v = 0; v < N; ++v) S::store(table + v * width, zero);
            total[0] = 0;
            for (int bit = 0; bit < 4; ++bit) {
                const int lane = rest ? lowest(rest) : 0;
                const T g = rest ? scaled[lane] : T(0);
                rest &= rest - (rest != 0);
                V z[N];
                for (int v = 0; v < N; ++v) z[v] = g * S::load(rates + lane * stride + first_unit + v * width);
                for (int entry = 0; entry < 1 << bit; ++entry) {
                    for (int v = 0; v < N; ++v)
                        S::store(table + ((1 << bit) + entry) * N * width + v * width,
                                 S::load(table + entry * N * width + v * width) + z[v]);
                    total[(1 << bit) + entry] = total[entry] + g;
                }
            }
        }
        const Index leaf_count = leaves(p), step = row(p);
        for (Index leaf = 0; leaf < leaf_count; ++leaf) {
            Word bits = compress(words[leaf], active);
            T *sum = leaf_sums + leaf * step + first_unit;
            V acc[N];
            for (int v = 0; v < N; ++v) acc[v] = S::load(sum + v * width);
            T c = 0;
            const T *table = w.tables;
            const T *total = w.totals;
            for (Index group = 0; group < groups; ++group, bits >>= 4, table += 16 * N * width, total += 16) {
                const T *entry = table + (bits & 15) * (N * width);
                for (int v = 0; v < N; ++v) acc[v] += S::load(entry + v * width);
                if (ones) c += total[bits & 15];
            }
            for (int v = 0; v < N; ++v) S::store(sum + v * width, acc[v]);
            if (ones) w.sums[leaf] = c;
        }
    }

    // gradient[lane] += alpha g J for the trials in `active`.
    template <int N>
    static void jacobians(const Problem<T> &p, const T *table, const std::uint32_t *bits, Index stride, Word active,
                          const T *scaled, T *gradient, Index gradient_stride) {
        const Index count = quads(p);
        for (Word rest = active; rest; rest &= rest - 1) {
            const int lane = lowest(rest);
            const std::uint32_t *from = bits + lane * stride;
            V even[N], odd[N];
            for (int v = 0; v < N; ++v) even[v] = odd[v] = V{};
            const T *entry = table;
            Index quad = 0;
            for (; quad + 8 <= count; quad += 8) {
                const std::uint32_t word = *from++;
                for (int i = 0; i < 8; i += 2, entry += 32 * N * width)
                    for (int v = 0; v < N; ++v) {
                        even[v] += S::load(entry + ((word >> (4 * i)) & 15) * (N * width) + v * width);
                        odd[v] += S::load(entry + (16 + ((word >> (4 * i + 4)) & 15)) * (N * width) + v * width);
                    }
            }
            for (std::uint32_t word = quad < count ? *from : 0; quad < count; ++quad, word >>= 4, entry += 16 * N * width)
                for (int v = 0; v < N; ++v) even[v] += S::load(entry + (word & 15) * (N * width) + v * width);
            T *out = gradient + lane * gradient_stride;
            for (int v = 0; v < N; ++v)
                S::store(out + v * width, S::load(out + v * width) + scaled[lane] * (even[v] + odd[v]));
        }
    }

    template <int N>
    static void backward_chunks(const Problem<T> &p, const Gradients<T> &gradients, const T *prepared, Block block,
                                Sums<T> sums, char *scratch) {
        const BlockView<T> view(p, block);
        const Index n = p.units, stride = row(p), per_unit = leaves(p);
        const Index bit_stride = (per_unit + 31) / 32;
        Arena arena{scratch};
        T *g = arena.take<T>(64 * n), *r = arena.take<T>(64 * n), *given = arena.take<T>(64 * n);
        T *forcing = arena.take<T>(64 * p.responses), *work = arena.take<T>(64 * p.responses);
        T *rates = arena.take<T>(64 * stride), *gradient = arena.take<T>(64 * stride), *scaled = arena.take<T>(64);
        Workspace space;
        space.tables = arena.take<T>(16 * 16 * N * width);
        space.totals = arena.take<T>(16 * 16);
        space.sums = arena.take<T>(per_unit);
        std::uint32_t *bits = arena.take<std::uint32_t>(64 * bit_stride);
        Word *padded = arena.take<Word>(32);

        for (Index i = 0; i < 64 * n; ++i) g[i] = 0;
        for (Index i = 0; i < 64 * stride; ++i) rates[i] = 0;
        for (Index step = p.steps - 1; step >= 0; --step) {
            view.add_given(gradients, step + 1, g, given);
            view.read(p.trajectory + step * n * p.lanes(), n, r);
            view.clamp_at(step, r, forcing, work);
            transpose(r, n, 64, 64, rates, stride);
            for (Index i = 0; i < 64 * stride; ++i) gradient[i] = 0;

            const Index time = p.time_index[step], drive = p.drive_index[step];
            const Word *words = p.masks + (block.number * p.steps + step) * p.all_nodes();
            const Word *soma = words + p.all_nodes() - n;
            for (Index k = 0; k < n; ++k) {
                const Word active = soma[k];
                if (!active) continue;
                for (Index lane = 0; lane < 64; ++lane) scaled[lane] = T(p.alpha) * g[64 * k + lane];
                const Word *leaf_words = words + k * per_unit;
                for (Index i = 0; i < bit_stride; ++i) {
                    const Word *from = leaf_words + 32 * i;
                    if (32 * (i + 1) > per_unit) {
                        for (Index j = 0; j < 32; ++j) padded[j] = 32 * i + j < per_unit ? from[j] : 0;
                        from = padded;
                    }
                    transpose_bits(from, bits + i, bit_stride);
                }
                T *leaf_sums = sums.leaf + k * per_unit * stride;
                T *bias_sums = sums.bias + time * p.nodes[0] + k * per_unit;
                for (Index c = 0; c < chunks(p); ++c) {
                    const T *table = prepared + packed_size(p) + (k * chunks(p) + c) * table_size(p);
                    jacobians<N>(p, table, bits, bit_stride, active, scaled, gradient + c * N * width, stride);
                    const Index parts = drive >= 0 ? view.span : 1;
                    for (Index i = 0; i < parts; ++i) {
                        Word part = active;
                        if (drive >= 0) {
                            const Index begin = view.lane_begin(i), end = view.lane_end(i);
                            part &= (end == 64 ? ~Word(0) : (Word(1) << end) - 1) & ~((Word(1) << begin) - 1);
                            if (!part) continue;
                        }
                        weigh_trials<N>(p, c * N * width, leaf_words, part, scaled, rates, stride, c == 0, leaf_sums,
                                        space);
                        if (c > 0) continue;
                        sum_inner_nodes(p, k, time, words, part, space.totals, sums);
                        for (Index leaf = 0; leaf < per_unit; ++leaf) bias_sums[leaf] += space.sums[leaf];
                        if (drive < 0) continue;
                        T *drive_sums = sums.drive + (drive * view.span + i) * p.nodes[0] + k * per_unit;
                        for (Index leaf = 0; leaf < per_unit; ++leaf) drive_sums[leaf] += space.sums[leaf];
                    }
                }
            }
            transpose(gradient, 64, stride, n, given, 64);
            for (Index i = 0; i < 64 * n; ++i) g[i] = T(1 - p.alpha) * g[i] + given[i];
            if (view.clamped(step)) view.clamp(g, nullptr, work);
        }
        view.add_given(gradients, 0, g, given);
        view.write(g, n, gradients.r0);

        // The drives' share of the sums of c times pre-activation, which the branch weights need.
        for (Index q = 0; q < p.drives; ++q)
            for (Index i = 0; i < view.span; ++i) {
                const T *sum = sums.drive + (q * view.span + i) * p.nodes[0];
                const T *drive = p.drive + (q * p.conditions + view.span_first + i) * p.nodes[0];
                for (Index leaf = 0; leaf < p.nodes[0]; ++leaf) sums.child[leaf] += sum[leaf] * drive[leaf];
            }
    }

    // Adds up c over the trials in `active` for the soma and the nodes between it and the leaves. totals is that of
    // weigh_trials for the same trials.
    static void sum_inner_nodes(const Problem<T> &p, Index unit, Index time, const Word *words, Word active,
                                const T *totals, Sums<T> sums) {
        const Index groups = (__builtin_popcountll(active) + 3) / 4;
        const Word *layer = words;
        T *bias = sums.bias;
        for (Index a = 1; a < p.layers; ++a) {
            layer += p.nodes[a - 1];
            bias += p.times * p.nodes[a - 1];
            const Index count = p.nodes[a] / p.units;
            for (Index node = unit * count; node < (unit + 1) * count; ++node) {
                T c = 0;
                Word bits = compress(layer[node], active);
                for (Index group = 0; group < groups; ++group, bits >>= 4) c += totals[16 * group + (bits & 15)];
                bias[time * p.nodes[a] + node] += c;
            }
        }
    }

    static void forward(const Problem<T> &p, const T *prepared, Block block, char *scratch) {
        if (p.masks) forward_block<true>(p, prepared, block, scratch);
        else forward_block<false>(p, prepared, block, scratch);
    }

    static void backward(const Problem<T> &p, const Gradients<T> &gradients, const T *prepared, Block block,
                         Sums<T> sums, char *scratch) {
        switch (chunk_vectors(p)) {
        case 1: return backward_chunks<1>(p, gradients, prepared, block, sums, scratch);
        case 2: return backward_chunks<2>(p, gradients, prepared, block, sums, scratch);
        case 3: return backward_chunks<3>(p, gradients, prepared, block, sums, scratch);
        default: return backward_chunks<4>(p, gradients, prepared, block, sums, scratch);
        }
    }
};

} // namespace lapsus::LAPSUS_ISA
