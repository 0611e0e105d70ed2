// The mesh of ranks that a program is compiled for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

struct MeshAxis {
  std::string name;
  std::int64_t ranks = 1;
};
/// Ranks as a grid of named axes, the last one adjacent; without axes it is one rank.
struct Mesh {
  std::vector<MeshAxis> axes;
  std::int64_t ranks() const;
};

/// Throws for a mesh with an axis of no rank or two of one name; for a collective of `g`, or of its bodies, over axes
/// that the mesh does not have or over another number of ranks than it has; and, where a device has no communicator,
/// for one of several ranks. Each names the node and the way out.
void check_mesh(const Graph& g, const Mesh& mesh, std::string_view device, bool communicator);

}  // namespace rlx
