// The Python module. Arrays come as addresses; lapsus/engine/fused.py checks shapes and keeps them alive.
#include "engine.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstring>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace lapsus;
using Address = std::uintptr_t;

template <class T> T *at(Address address) { return reinterpret_cast<T *>(address); }

template <class T> std::vector<T *> all_at(const std::vector<Address> &addresses) {
    std::vector<T *> pointers;
    for (Address address : addresses) pointers.push_back(at<T>(address));
    return pointers;
}

// A large batch's masks are hundreds of megabytes, new at every step: in pages of 4 KB a tenth of the step goes into
// page faults.
static void prefer_large_pages(Address address, std::size_t bytes) {
#if defined(__linux__)
    const Address size = Address(1) << 21, begin = (address + size - 1) / size * size, end = (address + bytes) / size * size;
    if (end > begin) madvise(at<void>(begin), end - begin, MADV_HUGEPAGE);
#else
    (void)address, (void)bytes;
#endif
}

// Owns the small arrays that a Problem points to.
template <class T> struct Rollout {
    std::vector<Index> nodes, children, drive_index, time_index;
    std::vector<double> sigma;
    std::vector<T *> branch_weight, bias;
    Problem<T> problem{};

    Rollout(const std::vector<Index> &sizes, bool softplus, double alpha, std::vector<Index> nodes_,
            std::vector<Index> children_, std::vector<Index> drive_index_, std::vector<Index> time_index_,
            std::vector<double> sigma_, const std::vector<Address> &arrays, const std::vector<Address> &branch_weight_,
            const std::vector<Address> &bias_)
        : nodes(std::move(nodes_)), children(std::move(children_)), drive_index(std::move(drive_index_)),
          time_index(std::move(time_index_)), sigma(std::move(sigma_)), branch_weight(all_at<T>(branch_weight_)),
          bias(all_at<T>(bias_)) {
        Problem<T> &p = problem;
        p.units = sizes.at(0), p.conditions = sizes.at(1), p.trials = sizes.at(2), p.steps = sizes.at(3);
        p.drives = sizes.at(4), p.times = sizes.at(5), p.responses = sizes.at(6), p.forced = sizes.at(7);
        p.group = sizes.at(8), p.layers = Index(nodes.size());
        p.softplus = softplus, p.alpha = alpha;
        p.nodes = nodes.data(), p.children = children.data();
        p.drive_index = drive_index.data(), p.time_index = time_index.data(), p.sigma = sigma.data();
        p.branch_weight = branch_weight.data(), p.bias = bias.data();
        p.leaf_weight = at<T>(arrays.at(0)), p.drive = at<T>(arrays.at(1)), p.readout = at<T>(arrays.at(2));
        p.r0 = at<T>(arrays.at(3)), p.noise = at<T>(arrays.at(4)), p.forcing = at<T>(arrays.at(5));
        p.trajectory = at<T>(arrays.at(6)), p.x = at<T>(arrays.at(7)), p.power = at<T>(arrays.at(8));
    }
    Rollout(const Rollout &) = delete;

    void run_forward(const std::string &isa, int threads) const {
        nb::gil_scoped_release release;
        forward(instruction_set(isa.c_str()), problem, threads);
    }

    void run_backward(const std::string &isa, int threads, const std::vector<Address> &arrays,
                      const std::vector<Address> &branch_weights, const std::vector<Address> &biases) const {
        std::vector<T *> branches = all_at<T>(branch_weights), tables = all_at<T>(biases);
        const Gradients<T> gradients{at<T>(arrays.at(0)), at<T>(arrays.at(1)), at<T>(arrays.at(2)), at<T>(arrays.at(3)),
                                     at<T>(arrays.at(4)), at<T>(arrays.at(5)), branches.data(),     tables.data()};
        nb::gil_scoped_release release;
        backward(instruction_set(isa.c_str()), problem, gradients, threads);
    }
};

template <class T> void bind(nb::module_ &m, const char *name) {
    nb::class_<Rollout<T>>(m, name)
        .def(nb::init<const std::vector<Index> &, bool, double, std::vector<Index>, std::vector<Index>,
                      std::vector<Index>, std::vector<Index>, std::vector<double>, const std::vector<Address> &,
                      const std::vector<Address> &, const std::vector<Address> &>())
        .def_prop_ro("mask_words",
                     [](const Rollout<T> &r) {
                         return block_count(r.problem) * r.problem.steps * r.problem.all_nodes();
                     })
        .def("set_masks",
             [](Rollout<T> &r, Address masks, std::size_t bytes) {
                 r.problem.masks = at<Word>(masks);
                 prefer_large_pages(masks, bytes);
             })
        .def("forward", &Rollout<T>::run_forward)
        .def("backward", &Rollout<T>::run_backward);
}

template <class T> void bind_project(nb::module_ &m, const char *name) {
    m.def(name, [](const std::vector<Index> &sizes, Address r, Address readout, Address x) {
        nb::gil_scoped_release release;
        project(sizes.at(0), sizes.at(1), sizes.at(2), sizes.at(3), at<const T>(r), at<const T>(readout), at<T>(x));
    });
}

NB_MODULE(_native, m) {
    bind_project<float>(m, "project_float32");
    bind_project<double>(m, "project_float64");
    bind<float>(m, "RolloutFloat32");
    bind<double>(m, "RolloutFloat64");
    m.def("instruction_set", [](const std::string &wanted) { return std::string(instruction_set(wanted.c_str()).name); });
    m.def("instruction_sets", [] {
        std::vector<std::string> usable;
        for (const char *const *name = instruction_set_names(); *name; ++name)
            if (instruction_set_usable(*name)) usable.push_back(*name);
        return usable;
    });
    m.def("adam", [](Index count, const std::vector<Address> &arrays, float beta_1, float beta_2, float rate, float unbias,
                     float epsilon) {
        nb::gil_scoped_release release;
        adam(count, at<float>(arrays.at(0)), at<float>(arrays.at(1)), at<float>(arrays.at(2)),
             {beta_1, beta_2, rate, unbias, epsilon});
    });
    m.def("zero", [](Address address, std::size_t bytes) { std::memset(at<void>(address), 0, bytes); });
    m.def("normal", [](const std::string &isa, std::uint32_t key0, std::uint32_t key1, std::uint32_t stream,
                       Index first_condition, Index conditions, Index rows, Index trials, Address out, int threads) {
        nb::gil_scoped_release release;
        normal(instruction_set(isa.c_str()), key0, key1, stream, first_condition, conditions, rows, trials,
               at<float>(out), threads);
    });
}
