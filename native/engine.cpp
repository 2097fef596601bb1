#include "engine.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace lapsus {

#define LAPSUS_DECLARE(isa)                                                                                            \
    namespace isa {                                                                                                    \
    const InstructionSet &instruction_set();                                                                           \
    }

#if defined(__x86_64__)
LAPSUS_DECLARE(sse2)
LAPSUS_DECLARE(avx2)
LAPSUS_DECLARE(avx512)
static const char *const names[] = {"avx512", "avx2", "sse2", nullptr};

bool instruction_set_usable(const char *name) {
    std::string wanted = name;
    if (wanted == "avx512")
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
    if (wanted == "avx2")
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    return wanted == "sse2";
}

static const InstructionSet &by_name(const std::string &name) {
    if (name == "avx512") return avx512::instruction_set();
    if (name == "avx2") return avx2::instruction_set();
    return sse2::instruction_set();
}
#else
#if defined(__aarch64__)
#define LAPSUS_BASELINE neon
#else
#define LAPSUS_BASELINE generic
#endif
#define LAPSUS_TEXT(x) #x
#define LAPSUS_NAME(x) LAPSUS_TEXT(x)
LAPSUS_DECLARE(LAPSUS_BASELINE)
static const char *const names[] = {LAPSUS_NAME(LAPSUS_BASELINE), nullptr};
bool instruction_set_usable(const char *name) { return std::string(name) == names[0]; }
static const InstructionSet &by_name(const std::string &) { return LAPSUS_BASELINE::instruction_set(); }
#endif

const char *const *instruction_set_names() { return names; }

const InstructionSet &instruction_set(const char *name) {
    if (*name) {
        for (const char *const *known = names; *known; ++known)
            if (std::string(name) == *known && instruction_set_usable(name)) return by_name(name);
        throw std::invalid_argument(std::string("this machine has no instruction set named ") + name);
    }
    for (const char *const *known = names; *known; ++known)
        if (instruction_set_usable(*known)) return by_name(*known);
    return by_name(names[0]);
}

namespace {

// Runs work(item, worker) for every item. Items are handed out one by one, in order, so that a core which other
// processes keep busy simply takes fewer of them.
template <class Work> void parallel(Index items, int threads, Work work) {
    if (threads > items) threads = int(items);
    std::atomic<Index> next{0};
    auto run = [&](int worker) {
        for (Index item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;) work(item, worker);
    };
    std::vector<std::thread> helpers;
    for (int worker = 1; worker < threads; ++worker) helpers.emplace_back(run, worker);
    if (items > 0) run(0);
    for (std::thread &helper : helpers) helper.join();
}

// Memory on cache lines of its own, zeroed on demand.
template <class U> class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(Index count)
        : memory_(static_cast<U *>(::operator new(bytes(count), std::align_val_t(64)))), count_(count) {}
    U *get() const { return memory_.get(); }
    void zero() const { std::memset(static_cast<void *>(memory_.get()), 0, count_ * sizeof(U)); }

  private:
    static std::size_t bytes(Index count) { return (count * sizeof(U) + 127) / 64 * 64; }
    struct Free {
        void operator()(U *p) const { ::operator delete(p, std::align_val_t(64)); }
    };
    std::unique_ptr<U, Free> memory_;
    Index count_ = 0;
};

template <class T> Kernels<T> kernels(const InstructionSet &set, bool softplus);
template <> Kernels<float> kernels<float>(const InstructionSet &set, bool softplus) { return set.single(softplus); }
template <> Kernels<double> kernels<double>(const InstructionSet &set, bool softplus) { return set.twice(softplus); }

template <class T> Buffer<T> prepared(const Kernels<T> &k, const Problem<T> &p, bool gradients, int threads) {
    Buffer<T> memory(k.prepared_size(p));
    // Starting a thread takes longer than rearranging the weights of a small network.
    if (p.nodes[0] * p.units < 1 << 18) threads = 1;
    parallel(p.units, threads, [&](Index unit, int) { k.prepare(p, unit, gradients, memory.get()); });
    return memory;
}

std::vector<Buffer<char>> scratch_for(int threads, Index size) {
    std::vector<Buffer<char>> scratch;
    for (int i = 0; i < threads; ++i) scratch.emplace_back(size);
    return scratch;
}

// The sums of a block or a group in one piece of memory.
template <class T> struct SumsMemory {
    Index leaf, child = 0, bias = 0, drive;
    Buffer<T> memory;

    SumsMemory(const Problem<T> &p, Index row, Index span) : leaf(p.nodes[0] * row), drive(p.drives * span * p.nodes[0]) {
        for (Index a = 0; a < p.layers; ++a) bias += p.times * p.nodes[a];
        for (Index a = 0; a + 1 < p.layers; ++a) child += p.nodes[a];
        memory = Buffer<T>(leaf + child + bias + drive);
    }
    Sums<T> view() const {
        T *at = memory.get();
        return {at, at + leaf, at + leaf + child, at + leaf + child + bias};
    }
};

// P of every node, layer by layer.
template <class T> std::vector<std::vector<T>> path_weights(const Problem<T> &p) {
    std::vector<std::vector<T>> path(p.layers);
    const Index top = p.layers - 1;
    path[top].assign(p.nodes[top], T(1));
    for (Index a = top; a >= 1; --a) {
        path[a - 1].resize(p.nodes[a - 1]);
        for (Index child = 0; child < p.nodes[a - 1]; ++child)
            path[a - 1][child] = path[a][child / p.children[a]] * p.branch_weight[a][child];
    }
    return path;
}

// With ReLU a block's sums lack the path weights, and the branch weights' gradients are still to be made: with A_j the
// sum of c_j times the pre-activation of node j, the gradient of the weight from j to its parent i is P_i A_j, and A of
// a parent is the weighted sum of its children's A plus the biases' share.
template <class T>
void finish_relu(const Problem<T> &p, const std::vector<std::vector<T>> &path, Index row, const Sums<T> &s) {
    const Index top = p.layers - 1;
    std::vector<T> moments(p.nodes[0]), above;
    T *child = s.child, *bias = s.bias;
    for (Index leaf = 0; leaf < p.nodes[0]; ++leaf) {
        T *sum = s.leaf + leaf * row;
        const T *w = p.leaf_weight + leaf * p.units;
        T moment = child[leaf];
        for (Index u = 0; u < p.units; ++u) moment += w[u] * sum[u], sum[u] *= path[0][leaf];
        moments[leaf] = moment;
    }
    for (Index a = 0; a < p.layers; ++a) {
        for (Index q = 0; q < p.times; ++q)
            for (Index node = 0; node < p.nodes[a]; ++node) {
                T &sum = bias[q * p.nodes[a] + node];
                moments[node] += p.bias[a][q * p.nodes[a] + node] * sum;
                sum *= path[a][node];
            }
        bias += p.times * p.nodes[a];
        if (a == top) break;
        above.assign(p.nodes[a + 1], T(0));
        for (Index node = 0; node < p.nodes[a]; ++node) {
            const Index parent = node / p.children[a + 1];
            child[node] = path[a + 1][parent] * moments[node];
            above[parent] += p.branch_weight[a + 1][node] * moments[node];
        }
        child += p.nodes[a];
        moments.swap(above);
    }
}

// Adds the sums of blocks in the order of the blocks, whichever thread finishes first: a block that is early waits in
// its own memory while its thread goes on.
template <class T> class Folder {
  public:
    Folder(const Kernels<T> &k, const Problem<T> &p, const Gradients<T> &g)
        : problem_(p), gradients_(g), row_(k.row(p)), span_(largest_span(p)), paths_(path_weights(p)), group_(p, row_, 0),
          waiting_(block_count(p)) {
        group_.memory.zero();
    }

    std::unique_ptr<SumsMemory<T>> take(Index block) {
        std::unique_ptr<SumsMemory<T>> sums;
        {
            std::unique_lock<std::mutex> lock(mutex_);
            // Bounds the memory that waits behind a thread which has fallen asleep; but not for the block that all others
            // wait for.
            freed_.wait(lock, [&] { return !free_.empty() || made_ < most_ || block == next_; });
            if (!free_.empty()) {
                sums = std::move(free_.back());
                free_.pop_back();
            } else ++made_;
        }
        if (!sums) sums = std::make_unique<SumsMemory<T>>(problem_, row_, span_);
        sums->memory.zero();
        return sums;
    }

    void give(Index block, std::unique_ptr<SumsMemory<T>> sums) {
        // A group of one block needs no sum over blocks, and is finished before the lock.
        if (alone() && !problem_.softplus) finish_relu(problem_, paths_, row_, sums->view());
        std::lock_guard<std::mutex> lock(mutex_);
        waiting_[block] = std::move(sums);
        while (next_ < Index(waiting_.size()) && waiting_[next_]) {
            add(block_at(problem_, next_), *waiting_[next_]);
            free_.push_back(std::move(waiting_[next_]));
            ++next_;
            freed_.notify_all();
        }
    }

  private:
    static Index largest_span(const Problem<T> &p) { return (block_lanes + p.trials - 2) / p.trials + 1; }

    static void accumulate(T *to, const T *from, Index count) {
        for (Index i = 0; i < count; ++i) to[i] += from[i];
    }

    void add(Block block, const SumsMemory<T> &from) {
        const Problem<T> &p = problem_;
        const Index span_first = block.first / p.trials;
        const Index span = (block.first + block.count - 1) / p.trials + 1 - span_first;
        for (Index d = 0; d < p.drives; ++d)
            accumulate(gradients_.drive + (d * p.conditions + span_first) * p.nodes[0],
                       from.view().drive + d * span * p.nodes[0], span * p.nodes[0]);
        const bool last = block.number + 1 == Index(waiting_.size()) ||
                          block_at(p, block.number + 1).group != block.group;
        if (alone()) add_group(block.group, from.view());
        else {
            accumulate(group_.memory.get(), from.memory.get(), group_.leaf + group_.child + group_.bias);
            if (!last) return;
            if (!p.softplus) finish_relu(p, paths_, row_, group_.view());
            add_group(block.group, group_.view());
            group_.memory.zero();
        }
    }

    bool alone() const { return blocks_per_group(problem_) == 1; }

    void add_group(Index group, const Sums<T> &sums) {
        const Problem<T> &p = problem_;
        for (Index leaf = 0; leaf < p.nodes[0]; ++leaf)
            accumulate(gradients_.leaf_weight + leaf * p.units, sums.leaf + leaf * row_, p.units);
        const T *child = sums.child, *bias = sums.bias;
        for (Index a = 0; a < p.layers; ++a) {
            if (a + 1 < p.layers) accumulate(gradients_.branch_weight[a + 1], child, p.nodes[a]);
            accumulate(gradients_.bias[a], bias, p.times * p.nodes[a]);
            child += p.nodes[a];
            bias += p.times * p.nodes[a];
        }
        if (!p.softplus) weigh_drives(group);
    }

    void weigh_drives(Index group) {
        const Problem<T> &p = problem_;
        const Index end = std::min(p.conditions, (group + 1) * p.group);
        for (Index d = 0; d < p.drives; ++d)
            for (Index c = group * p.group; c < end; ++c) {
                T *gradient = gradients_.drive + (d * p.conditions + c) * p.nodes[0];
                for (Index leaf = 0; leaf < p.nodes[0]; ++leaf) gradient[leaf] *= paths_[0][leaf];
            }
    }

    const Problem<T> &problem_;
    const Gradients<T> &gradients_;
    const Index row_, span_;
    const std::vector<std::vector<T>> paths_;
    SumsMemory<T> group_;
    std::vector<std::unique_ptr<SumsMemory<T>>> waiting_, free_;
    Index next_ = 0;
    int made_ = 0;
    static constexpr int most_ = 96;
    std::mutex mutex_;
    std::condition_variable freed_;
};

} // namespace

template <class T> void forward(const InstructionSet &set, const Problem<T> &p, int threads) {
    const Kernels<T> k = kernels<T>(set, p.softplus);
    if (p.lanes() == 0) return;
    Buffer<T> weights = prepared(k, p, false, 1);
    auto scratch = scratch_for(threads, k.scratch_size(p));
    parallel(block_count(p), threads, [&](Index block, int worker) {
        k.forward(p, weights.get(), block_at(p, block), scratch[worker].get());
    });
}

template <class T> void backward(const InstructionSet &set, const Problem<T> &p, const Gradients<T> &g, int threads) {
    const Kernels<T> k = kernels<T>(set, p.softplus);
    if (p.lanes() == 0) return;
    Buffer<T> weights = prepared(k, p, true, threads);
    auto scratch = scratch_for(threads, k.scratch_size(p));
    Folder<T> folder(k, p, g);
    parallel(block_count(p), threads, [&](Index block, int worker) {
        auto sums = folder.take(block);
        k.backward(p, g, weights.get(), block_at(p, block), sums->view(), scratch[worker].get());
        folder.give(block, std::move(sums));
    });
}

template void forward<float>(const InstructionSet &, const Problem<float> &, int);
template void forward<double>(const InstructionSet &, const Problem<double> &, int);
template void backward<float>(const InstructionSet &, const Problem<float> &, const Gradients<float> &, int);
template void backward<double>(const InstructionSet &, const Problem<double> &, const Gradients<double> &, int);

void normal(const InstructionSet &set, std::uint32_t key0, std::uint32_t key1, std::uint32_t stream, Index first_condition,
            Index conditions, Index rows, Index trials, float *out, int threads) {
    parallel(conditions, threads, [&](Index c, int) {
        const NormalKey key{key0, key1, std::uint32_t(first_condition + c), stream};
        constexpr Index runs = 16;
        float values[runs * normal_run];
        const Index total = rows * trials;
        for (Index first = 0; first < total; first += runs * normal_run) {
            const Index count = std::min(total - first, runs * normal_run);
            set.normal(key, Word(first / normal_run), (count + normal_run - 1) / normal_run, values);
            for (Index i = 0; i < count;) {
                const Index row = (first + i) / trials, column = (first + i) % trials;
                const Index length = std::min(trials - column, count - i);
                std::memcpy(out + (row * conditions + c) * trials + column, values + i, length * sizeof(float));
                i += length;
            }
        }
    });
}

void adam(Index count, float *gradient, float *moment_1, float *moment_2, Adam a) {
    const float root = std::sqrt(a.unbias), rate = a.rate * root, epsilon = a.epsilon * root;
    for (Index i = 0; i < count; ++i) {
        const float g = gradient[i], m = moment_1[i] + (1 - a.beta_1) * (g - moment_1[i]);
        const float v = a.beta_2 * moment_2[i] + (1 - a.beta_2) * g * g;
        moment_1[i] = m, moment_2[i] = v;
        gradient[i] = rate * m / (std::sqrt(v) + epsilon);
    }
}

// Every lane is summed by itself in the same order, in a full run of lanes as in the rest, so that cutting a batch
// changes no bit.
template <class T>
void project(Index steps, Index units, Index responses, Index lanes, const T *r, const T *readout, T *x) {
    constexpr Index run = 16; // lanes that stay in registers while units go by
    auto sums = [&](const T *from, const T *weight, T *to, auto count) {
        T sum[count] = {};
        for (Index u = 0; u < units; ++u)
            for (Index i = 0; i < count; ++i) sum[i] += weight[u] * from[u * lanes + i];
        std::copy(sum, sum + count, to);
    };
    for (Index s = 0; s < steps; ++s)
        for (Index d = 0; d < responses; ++d) {
            const T *from = r + s * units * lanes, *weight = readout + d * units;
            T *to = x + (s * responses + d) * lanes;
            Index first = 0;
            for (; first + run <= lanes; first += run) sums(from + first, weight, to + first, std::integral_constant<Index, run>());
            for (; first < lanes; ++first) sums(from + first, weight, to + first, std::integral_constant<Index, 1>());
        }
}

template void project<float>(Index, Index, Index, Index, const float *, const float *, float *);
template void project<double>(Index, Index, Index, Index, const double *, const double *, double *);

} // namespace lapsus
