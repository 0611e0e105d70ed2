// Checks that a mesh and a device support the collectives of a program.
#include "rlx/compiler/mesh.h"

#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/collectives.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {
namespace {

struct Group {
  std::string axes;
  std::int64_t ranks = 1;
};

std::optional<Group> group_of(const OpBox& op) {
  std::optional<Group> out;
  const auto look = [&](const auto* c) {
    if (c) out = Group{c->mesh_axes, c->ranks};
  };
  look(op.get_if<ops::AllReduce>());
  look(op.get_if<ops::AllGather>());
  look(op.get_if<ops::ReduceScatter>());
  look(op.get_if<ops::AllToAll>());
  look(op.get_if<ops::Permute>());
  look(op.get_if<ops::AxisIndex>());
  return out;
}

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> out(1);
  for (char c : list) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

void check_group(const Graph& g, NodeId id, const Group& group, const Mesh& mesh) {
  const auto fail = [&](ErrorCode code, std::string message, std::string hint) {
    throw Error(
        Diagnostic{code, concat_text(op_text_name(g.node(id).op), " ", message), node_where(g, id), std::move(hint)});
  };
  if (mesh.axes.empty()) {
    if (group.ranks != 1)
      fail(ErrorCode::InvalidArgument,
           concat_text("over '", group.axes, "' takes ", group.ranks,
                       " ranks, but the program is compiled without a mesh"),
           "give the axes and their ranks as CompileOptions::mesh");
    return;
  }
  std::int64_t ranks = 1;
  for (const std::string& name : names_in(group.axes)) {
    std::vector<std::string> known;
    for (const MeshAxis& a : mesh.axes) known.push_back(a.name);
    const auto it = std::find(known.begin(), known.end(), name);
    if (it == known.end())
      fail(ErrorCode::NotFound, concat_text("is over '", name, "', which is not an axis of the mesh"),
           did_you_mean(name, known, "name an axis of CompileOptions::mesh"));
    ranks *= mesh.axes[static_cast<std::size_t>(it - known.begin())].ranks;
  }
  if (ranks != group.ranks)
    fail(ErrorCode::InvalidArgument,
         concat_text("over '", group.axes, "' is built for ", group.ranks, " ranks, but the mesh has ", ranks,
                     " ranks there"),
         "build the graph for the mesh it is compiled for");
}

}  // namespace

std::int64_t Mesh::ranks() const {
  std::int64_t n = 1;
  for (const MeshAxis& a : axes) n *= a.ranks;
  return n;
}

void check_mesh(const Graph& g, const Mesh& mesh, std::string_view device, bool communicator) {
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    if (mesh.axes[i].name.empty() || mesh.axes[i].ranks < 1)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("mesh axis '", mesh.axes[i].name, "' has ", mesh.axes[i].ranks, " ranks"),
                  "give each axis a name and at least one rank");
    for (std::size_t k = 0; k < i; ++k)
      if (mesh.axes[k].name == mesh.axes[i].name)
        throw Error(ErrorCode::InvalidArgument, concat_text("the mesh has two axes called '", mesh.axes[i].name, "'"));
  }
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const NodeId id{i};
    const Node& n = g.node(id);
    if (op_def(n.op).bodies == BodyKind::Programs)
      for (const Subgraph& body : body_graphs(n.op)) check_mesh(*body, mesh, device, communicator);
    const std::optional<Group> group = group_of(n.op);
    if (!group) continue;
    check_group(g, id, *group, mesh);
    if (group->ranks != 1 && !communicator)
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text(op_text_name(n.op), " over '", group->axes, "' takes ", group->ranks,
                                         " ranks, but ", device, " has no communicator"),
                             node_where(g, id), "compile for a mesh of one rank, or for a device with a communicator"});
  }
}

}  // namespace rlx
