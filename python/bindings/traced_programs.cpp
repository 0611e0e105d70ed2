#include "python/bindings/traced_programs.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx::python {
namespace {

// The program of graphs of one structure, on one session, with one set of options.
struct Family {
  nb::object session;             // its address is part of the key
  std::vector<Tensor> constants;  // of the last graph
  std::vector<bool> varies;       // these are inputs of the program
  std::uint32_t compiles = 0;
  std::shared_ptr<ProgramEntry> program;
  std::uint64_t used = 0;
};

constexpr std::size_t kMostFamilies = 512;
// A structure that was compiled more often than this takes all of its constants as inputs.
constexpr std::uint32_t kMostCompiles = 3;

// It lives as long as the process, because Python objects cannot be released after the interpreter has ended.
std::map<std::string, Family>& families() {
  static auto* all = new std::map<std::string, Family>();
  return *all;
}

std::vector<NodeId> constant_nodes(const Graph& g) {
  std::vector<NodeId> out;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (g.nodes()[i].kind() == OpKind::Constant) out.push_back(NodeId{i});
  return out;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() ||
         (a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// `g` with an input in place of each of these constants, behind the inputs that it has.
Graph with_inputs(const Graph& g, const std::vector<NodeId>& constants, const std::vector<bool>& varies) {
  Rebuilder r(g, "lift-constants");
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const bool here = next < constants.size() && constants[next] == NodeId{i};
    if (here && varies[next])  // no path of an argument has a space
      r.replace(NodeId{i}, {r.graph().input(concat_text("constant ", next), g.shape(Value(NodeId{i})))});
    else
      r.copy(NodeId{i});
    if (here) ++next;
  }
  return std::move(r).finish();
}

void make_room() {
  auto& all = families();
  while (all.size() >= kMostFamilies)
    all.erase(std::min_element(all.begin(), all.end(),
                               [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

std::shared_ptr<ProgramEntry> compiled(nb::handle session, Graph g, nb::handle options, const std::vector<bool>& weak,
                                       nb::handle keeps) {
  const nb::object graph = nb::cast(PyGraph(std::move(g)));
  const nb::object made = session.attr("compile")(graph, **nb::borrow<nb::dict>(options));
  auto e = std::make_shared<ProgramEntry>();
  set_program(*e, nb::cast<std::shared_ptr<PyCompiled>>(made));
  e->weak = weak;
  e->keeps = nb::borrow(keeps);
  return e;
}

// (the program of the graph, the arrays that follow its arguments, whether it was compiled now)
nb::object program_of(nb::handle session, PyGraph& py_graph, nb::handle options, const std::vector<bool>& weak,
                      nb::handle keeps) {
  static std::uint64_t clock = 0;
  const Graph& g = py_graph.get();
  const Fingerprint structure = structure_fingerprint(g);
  std::string key;
  append_bytes(key, session.ptr());
  append_bytes(key, structure);
  for (const bool w : weak) key.push_back(w ? 'w' : 's');
  if (nb::len(options) != 0) key += nb::repr(options).c_str();

  const std::vector<NodeId> places = constant_nodes(g);
  std::vector<Tensor> constants;
  for (const NodeId id : places) constants.push_back(static_cast<const ops::Constant*>(g.node(id).op.data())->value);

  auto found = families().find(key);
  const bool known = found != families().end();
  std::vector<bool> varies = known ? found->second.varies : std::vector<bool>(places.size(), false);
  bool changed = !known;
  for (std::size_t i = 0; known && i < places.size(); ++i)
    if (!varies[i] && !same_bytes(constants[i], found->second.constants[i])) varies[i] = changed = true;
  if (known && changed && found->second.compiles >= kMostCompiles) varies.assign(places.size(), true);

  std::shared_ptr<ProgramEntry> program;
  if (changed) {
    const bool lifted = std::find(varies.begin(), varies.end(), true) != varies.end();
    program = compiled(session, lifted ? with_inputs(g, places, varies) : Graph(g), options, weak, keeps);
    // The compile lets other threads run, so the table is looked up again.
    if (!families().contains(key)) make_room();
    Family& family = families()[key];
    family.session = nb::borrow(session);
    family.varies = varies;
    family.program = program;
    ++family.compiles;
    found = families().find(key);
  } else {
    program = found->second.program;
  }
  found->second.used = ++clock;
  nb::list arrays;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (varies[i]) arrays.append(array_object(constants[i]));
  if (changed) {
    // Constants that are inputs are not kept: they may be large, and are never compared again.
    for (std::size_t i = 0; i < places.size(); ++i)
      if (varies[i]) constants[i] = Tensor();
    found->second.constants = std::move(constants);
  }
  return nb::make_tuple(program, arrays, changed);
}

}  // namespace

bool Guard::holds() const {
  if (kind == Kind::Attribute) {
    const nb::object now = nb::steal(PyObject_GetAttr(container.ptr(), name.ptr()));
    if (!now.is_valid()) PyErr_Clear();
    return now.is(expected);
  }
  PyObject* now = PyDict_GetItemWithError(container.ptr(), name.ptr());
  if (!now && PyErr_Occurred()) PyErr_Clear();
  return kind == Kind::Absent ? now == nullptr : now == expected.ptr();
}

std::vector<Guard> guards_from(nb::handle list) {
  std::vector<Guard> out;
  for (nb::handle h : list) {
    const auto kind = nb::cast<std::string>(h[0]);
    Guard g;
    g.kind = kind == "entry" ? Guard::Kind::Entry : kind == "absent" ? Guard::Kind::Absent : Guard::Kind::Attribute;
    g.container = h[1], g.name = h[2], g.expected = h[3];
    out.push_back(std::move(g));
  }
  return out;
}

bool LiveProgram::current() const {
  if (!kept) return false;
  for (const Guard& g : guards)
    if (!g.holds()) return false;
  return true;
}

void append_arrays(CallScratch& s, const std::vector<nb::object>& arrays) {
  for (const nb::object& a : arrays) {
    TensorView view;
    s.first_dim.push_back(s.dims.size());
    view_tensor(s, nb::inst_ptr<PyArray>(a)->tensor, view);
    s.views.push_back(view);
    s.leaves.push_back(a);
  }
}

void bind_traced_programs(nb::module_& m) {
  nb::class_<ProgramEntry>(m, "ProgramEntry", "A program that graphs of one structure share.");
  m.def("program_of", &program_of, nb::arg("session"), nb::arg("graph"), nb::arg("options"), nb::arg("weak"),
        nb::arg("keeps"));
  m.def("clear_programs", [] { families().clear(); });
}

}  // namespace rlx::python
