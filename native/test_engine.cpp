// The kernel without Python, for the sanitizers: many small networks on several threads and every instruction set that
// this machine has. Each trial is compared with a plain loop, each gradient with a difference quotient, and the bits of
// one thread with those of many. `test_engine bench` times the paper's network instead.
#include "engine.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

using namespace lapsus;

template <class T> struct Case {
    std::vector<Index> nodes, children, drive_index, time_index;
    std::vector<double> sigma;
    std::vector<T> leaf_weight, drive, readout, r0, noise, forcing, trajectory, x, power;
    std::vector<std::vector<T>> branch_weight, bias;
    std::vector<const T *> branch_pointers, bias_pointers;
    std::vector<Word> masks;
    Problem<T> p{};

    Case(std::mt19937 &random, Index units, const std::vector<Index> &branching, Index conditions, Index trials,
         Index steps, Index forced, bool softplus, Index group) {
        std::normal_distribution<double> normal;
        auto fill = [&](std::vector<T> &v, Index count, double scale) {
            v.resize(count);
            for (T &x : v) x = T(scale * normal(random));
        };
        nodes.assign(1, units);
        for (Index b : branching) nodes.insert(nodes.begin(), nodes.front() * b);
        children.assign(1, 0);
        for (std::size_t i = branching.size(); i-- > 0;) children.push_back(branching[i]);
        const Index layers = Index(nodes.size()), drives = 2, times = 3, responses = units > 1 ? 2 : 1;
        for (Index s = 0; s < steps; ++s) {
            drive_index.push_back(s % 4 < 2 ? s % 4 : -1);
            time_index.push_back(s % times);
            sigma.push_back(s + 1 < steps ? 0.3 : 0.0);
        }
        fill(leaf_weight, nodes[0] * units, std::sqrt(2.0 / double(units)));
        branch_weight.resize(layers), bias.resize(layers);
        for (Index a = 0; a < layers; ++a) {
            fill(bias[a], times * nodes[a], 0.3);
            if (a) fill(branch_weight[a], nodes[a - 1], std::sqrt(2.0 / double(children[a])));
            branch_pointers.push_back(branch_weight[a].data());
            bias_pointers.push_back(bias[a].data());
        }
        const Index lanes = conditions * trials;
        fill(drive, drives * conditions * nodes[0], 1);
        readout.assign(responses * units, 0);
        for (Index d = 0; d < responses; ++d) readout[d * units + d] = 1;
        fill(r0, units * lanes, 1), fill(noise, steps * units * lanes, 1), fill(forcing, forced * responses * lanes, 1);
        trajectory.assign((steps + 1) * units * lanes, 0), x.assign((steps + 1) * responses * lanes, 0), power.assign(lanes, 0);
        p.units = units, p.layers = layers, p.conditions = conditions, p.trials = trials, p.steps = steps;
        p.drives = drives, p.times = times, p.responses = responses, p.forced = forced, p.group = group;
        p.softplus = softplus, p.alpha = 0.1;
        p.nodes = nodes.data(), p.children = children.data();
        p.drive_index = drive_index.data(), p.time_index = time_index.data(), p.sigma = sigma.data();
        p.leaf_weight = leaf_weight.data(), p.drive = drive.data(), p.readout = readout.data();
        p.branch_weight = branch_pointers.data(), p.bias = bias_pointers.data();
        p.r0 = r0.data(), p.noise = noise.data(), p.forcing = forcing.data(), p.trajectory = trajectory.data();
        p.x = x.data(), p.power = power.data();
        masks.resize(block_count(p) * steps * p.all_nodes());
    }
};

// A loss that is linear in what a rollout gives; what is left empty does not count.
template <class T> struct Loss {
    std::vector<T> trajectory, x, power;
};

template <class T> struct Result {
    std::vector<T> trajectory, x, power, r0, leaf_weight, drive;
    std::vector<std::vector<T>> branch_weight, bias;
};

template <class T> Result<T> run(Case<T> &c, const InstructionSet &set, int threads, const Loss<T> &loss) {
    Problem<T> &p = c.p;
    p.masks = p.softplus ? nullptr : c.masks.data();
    forward(set, p, threads);
    Result<T> r;
    r.trajectory = c.trajectory, r.x = c.x, r.power = c.power;
    r.r0.assign(c.r0.size(), 0), r.leaf_weight.assign(c.leaf_weight.size(), 0), r.drive.assign(c.drive.size(), 0);
    std::vector<T *> branches, biases;
    for (auto &b : c.branch_weight) r.branch_weight.emplace_back(b.size(), T(0));
    for (auto &b : c.bias) r.bias.emplace_back(b.size(), T(0));
    for (auto &b : r.branch_weight) branches.push_back(b.data());
    for (auto &b : r.bias) biases.push_back(b.data());
    auto given = [](const std::vector<T> &v) { return v.empty() ? nullptr : v.data(); };
    backward(set, p,
             {given(loss.trajectory), given(loss.x), given(loss.power), r.r0.data(), r.leaf_weight.data(), r.drive.data(),
              branches.data(), biases.data()},
             threads);
    return r;
}

template <class T> double plain_loop_error(const Case<T> &c) {
    const Problem<T> &p = c.p;
    double worst = 0;
    for (Index lane = 0; lane < p.lanes(); ++lane) {
        std::vector<double> r(p.units);
        for (Index u = 0; u < p.units; ++u) r[u] = c.r0[u * p.lanes() + lane];
        for (Index s = 0; s < p.steps; ++s) {
            if (s >= p.steps - p.forced)
                for (Index d = 0; d < p.responses; ++d)
                    r[d] = c.forcing[((s - p.steps + p.forced) * p.responses + d) * p.lanes() + lane];
            std::vector<double> h;
            for (Index a = 0; a < p.layers; ++a) {
                std::vector<double> next(p.nodes[a]);
                for (Index i = 0; i < p.nodes[a]; ++i) {
                    double x = c.bias[a][p.time_index[s] * p.nodes[a] + i];
                    if (a == 0) {
                        for (Index u = 0; u < p.units; ++u) x += c.leaf_weight[i * p.units + u] * r[u];
                        if (p.drive_index[s] >= 0)
                            x += c.drive[(p.drive_index[s] * p.conditions + lane / p.trials) * p.nodes[0] + i];
                    } else
                        for (Index j = 0; j < p.children[a]; ++j)
                            x += c.branch_weight[a][i * p.children[a] + j] * h[i * p.children[a] + j];
                    next[i] = p.softplus ? std::log1p(std::exp(x)) : std::max(x, 0.0);
                }
                h.swap(next);
            }
            for (Index u = 0; u < p.units; ++u) {
                const Index at = u * p.lanes() + lane;
                r[u] = (1 - p.alpha) * r[u] + p.alpha * h[u] + p.sigma[s] * c.noise[s * p.units * p.lanes() + at];
                worst = std::max(worst, std::abs(r[u] - c.trajectory[(s + 1) * p.units * p.lanes() + at]));
            }
        }
    }
    return worst;
}

// What is read out of the trajectory, against sums written out.
template <class T> double read_out_error(const Case<T> &c) {
    const Problem<T> &p = c.p;
    double worst = 0;
    for (Index lane = 0; lane < p.lanes(); ++lane) {
        double squares = 0;
        for (Index s = 0; s <= p.steps; ++s) {
            auto rate = [&](Index u) { return double(c.trajectory[(s * p.units + u) * p.lanes() + lane]); };
            for (Index u = 0; u < p.units; ++u) squares += rate(u) * rate(u);
            for (Index d = 0; d < p.responses; ++d) {
                double x = -double(c.x[(s * p.responses + d) * p.lanes() + lane]);
                for (Index u = 0; u < p.units; ++u) x += double(c.readout[d * p.units + u]) * rate(u);
                worst = std::max(worst, std::abs(x));
            }
        }
        worst = std::max(worst, std::abs(squares - c.power[lane]) / (1 + squares));
    }
    return worst;
}

static int failures = 0;

static void check(bool right, const char *what, const char *isa, double value) {
    if (right) return;
    ++failures;
    std::printf("FAILED %s (%s): %g\n", what, isa, value);
}

template <class T> double dot(const std::vector<T> &a, const std::vector<T> &b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * double(b[i]);
    return sum;
}

// d loss along a random direction of everything at once, by central differences.
static void check_gradient(Case<double> &c, const InstructionSet &set, const Loss<double> &given, const Result<double> &result,
                           std::mt19937 &random) {
    std::normal_distribution<double> normal;
    double expected = 0;
    std::vector<std::pair<double *, double>> moves;
    auto along = [&](std::vector<double> &values, const std::vector<double> &gradient) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double direction = normal(random);
            moves.emplace_back(&values[i], direction);
            expected += direction * gradient[i];
        }
    };
    along(c.r0, result.r0), along(c.leaf_weight, result.leaf_weight), along(c.drive, result.drive);
    for (Index a = 0; a < c.p.layers; ++a) along(c.branch_weight[a], result.branch_weight[a]), along(c.bias[a], result.bias[a]);
    const double size = 1e-7;
    double loss[2];
    for (int side = 0; side < 2; ++side) {
        for (auto &move : moves) *move.first += (side ? -2 : 1) * size * move.second;
        forward(set, c.p, 2);
        loss[side] = dot(given.trajectory, c.trajectory) + dot(given.x, c.x) + dot(given.power, c.power);
    }
    for (auto &move : moves) *move.first += size * move.second;
    const double found = (loss[0] - loss[1]) / (2 * size);
    check(std::abs(found - expected) < 1e-4 * (1 + std::abs(expected)), "gradient", set.name, found - expected);
}

template <class T> void sweep(int rounds) {
    std::mt19937 random(7);
    auto pick = [&](Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random); };
    for (int round = 0; round < rounds; ++round) {
        std::vector<Index> branching(pick(1, 3));
        for (Index &b : branching) b = pick(1, branching.size() > 2 ? 3 : 7);
        const Index units = pick(1, 20), conditions = pick(1, 9), trials = pick(1, 40), steps = pick(1, 6);
        Case<T> c(random, units, branching, conditions, trials, steps, pick(0, steps), round % 2, pick(1, conditions));
        // All three kinds of gradient at once, and each of them alone.
        Loss<T> loss;
        std::normal_distribution<double> normal;
        auto weigh = [&](std::vector<T> &weights, std::size_t size, int only) {
            if (round % 4 != 0 && round % 4 != only) return;
            weights.resize(size);
            for (T &w : weights) w = T(normal(random));
        };
        weigh(loss.trajectory, c.trajectory.size(), 1), weigh(loss.x, c.x.size(), 2), weigh(loss.power, c.power.size(), 3);
        for (const char *const *name = instruction_set_names(); *name; ++name) {
            if (!instruction_set_usable(*name)) continue;
            const InstructionSet &set = instruction_set(*name);
            const Result<T> one = run(c, set, 1, loss);
            const double error = plain_loop_error(c), read = read_out_error(c);
            check(error < (sizeof(T) == 8 ? 1e-8 : 1e-2), "trajectory", *name, error);
            check(read < (sizeof(T) == 8 ? 1e-12 : 1e-4), "what is read out", *name, read);
            const Result<T> many = run(c, set, 4, loss);
            check(one.leaf_weight == many.leaf_weight && one.drive == many.drive && one.bias == many.bias &&
                      one.branch_weight == many.branch_weight && one.r0 == many.r0 && one.trajectory == many.trajectory &&
                      one.x == many.x && one.power == many.power,
                  "same bits on four threads", *name, 0);
            if constexpr (sizeof(T) == 8) check_gradient(c, set, loss, one, random);
        }
    }
}

static void bench(int threads) {
    std::mt19937 random(1);
    Case<float> c(random, 16, {10, 10}, 32, 16, 68, 40, false, 4);
    // The paper's trial: two drives, one bias row before cue offset and one for each of 40 steps after it.
    for (Index s = 0; s < 68; ++s) c.drive_index[s] = s >= 3 && s < 8 ? 0 : s >= 23 && s < 28 ? 1 : -1;
    for (float &w : c.branch_weight[2]) w *= 0.5f;
    const Loss<float> loss{{}, std::vector<float>(c.x.size(), 1.0f), std::vector<float>(c.power.size(), 1.0f)};
    const InstructionSet &set = instruction_set(std::getenv("LAPSUS_ISA") ? std::getenv("LAPSUS_ISA") : "");
    // The processor time of this thread, which other processes do not lengthen; with more threads, the clock's.
    auto now = [&] {
        timespec t;
        clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
        return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
    };
    double best[3] = {1e9, 1e9, 1e9};
    for (int i = 0; i < 20; ++i) {
        const double start = now();
        c.p.masks = nullptr;
        forward(set, c.p, threads);
        const double begin = now();
        best[2] = std::min(best[2], begin - start);
        c.p.masks = c.masks.data();
        forward(set, c.p, threads);
        const double middle = now();
        run(c, set, threads, loss);
        best[0] = std::min(best[0], middle - begin), best[1] = std::min(best[1], now() - middle);
    }
    std::printf("%s, %d threads: forward %.2f ms, backward %.2f ms, %.0f trials/s; without gradients %.2f ms\n",
                set.name, threads, 1e3 * best[0], 1e3 * (best[1] - best[0]), 512 / best[1], 1e3 * best[2]);
}

// More blocks than there are buffers for sums, on more threads than cores: whoever falls asleep must not hold up the rest.
static void many_blocks() {
    std::mt19937 random(3);
    Case<float> c(random, 1, {1}, 6000, 64, 1, 0, false, 1);
    const Loss<float> loss{{}, std::vector<float>(c.x.size(), 1.0f), {}};
    const InstructionSet &set = instruction_set("");
    const Result<float> one = run(c, set, 1, loss);
    for (int threads : {2, 4, 16}) {
        const Result<float> many = run(c, set, threads, loss);
        check(one.leaf_weight == many.leaf_weight && one.drive == many.drive, "many blocks", set.name, threads);
    }
}

int main(int count, char **arguments) {
    if (count > 1 && std::string(arguments[1]) == "bench") {
        bench(count > 2 ? std::atoi(arguments[2]) : 1);
        return 0;
    }
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 40;
    sweep<double>(rounds);
    sweep<float>(rounds);
    for (const char *const *name = instruction_set_names(); *name; ++name) {
        if (!instruction_set_usable(*name)) continue;
        std::vector<float> one(7 * 5 * 13), many(7 * 5 * 13);
        normal(instruction_set(*name), 1, 2, 0, 3, 5, 7, 13, one.data(), 1);
        normal(instruction_set(*name), 1, 2, 0, 3, 5, 7, 13, many.data(), 4);
        check(one == many, "noise on four threads", *name, 0);
    }
    many_blocks();
    std::printf(failures ? "%d failures\n" : "all right\n", failures);
    return failures ? 1 : 0;
}
