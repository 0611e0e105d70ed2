// A target whose answers a test sets. By default it claims every node and reads and writes nothing in place.
#pragma once

#include <string>
#include <string_view>

#include "rlx/device/target.h"

namespace rlx::test {

/// For `over`: unary functions overwrite their operand.
inline bool in_place_unary(const Graph& g, NodeId id, int, int) { return g.node(id).kind() == OpKind::Activation; }

struct ToyTarget final : Target {
  OpSet takes = OpSet::everything();
  TargetLimits bounds;
  bool (*accepts)(const Graph&, NodeId) = nullptr;  // for nodes of claimed kinds
  bool (*host)(const Graph&, NodeId) = nullptr;
  bool (*strided)(const Graph&, NodeId, int operand) = nullptr;
  bool (*over)(const Graph&, NodeId, int operand, int result) = nullptr;

  bool (*skips)(const Graph&, NodeId, int result) = nullptr;

  std::string_view name() const override { return "toy"; }
  TargetLimits limits() const override { return bounds; }
  const OpSet& kinds() const override { return takes; }
  const char* refuses(const Graph& g, NodeId id) const override {
    if (const char* why = takes.refuses(g, id)) return why;
    return accepts == nullptr || accepts(g, id) ? nullptr : "the toy does not accept it";
  }
  bool by_kind() const override { return accepts == nullptr; }
  bool on_host(const Graph& g, NodeId id) const override { return host != nullptr && host(g, id); }
  bool reads_strided(const Graph& g, NodeId id, int operand) const override {
    return strided != nullptr && strided(g, id, operand);
  }
  bool skips_unread(const Graph& g, NodeId id, int result) const override {
    return skips != nullptr && skips(g, id, result);
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    return over != nullptr && over(g, id, operand, result);
  }
};

}  // namespace rlx::test
