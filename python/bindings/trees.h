// Trees of arrays: tuples, lists, dicts, dataclasses and registered classes, taken apart and put together again.
#pragma once

#include "python/bindings/common.h"

namespace rlx::python {

enum class TreeKind : std::uint8_t { Leaf, None, Tuple, NamedTuple, List, Dict, DataClass, Registered };

/// A node of a tree in the order of a walk from the root: its children follow it.
struct TreeNode {
  TreeKind kind = TreeKind::Leaf;
  std::uint32_t arity = 0;
  nb::object type;  // of NamedTuple, DataClass, Registered, and of an OrderedDict
  nb::object keys;  // of Dict the keys, of DataClass the field names, in order; of Registered what rebuilds it
};

/// The form of a tree without its leaves.
struct TreeDef {
  std::vector<TreeNode> nodes;
  std::size_t leaves = 0;
  bool operator==(const TreeDef& other) const;
  std::string text() const;
};

/// The leaves of `tree` go to `leaves`, its form to `def`; either may be null. The kinds and keys of inner nodes are
/// appended to `key`, if there is one, such that equal bytes mean equal forms while their types and keys live.
void flatten(nb::handle tree, std::vector<nb::object>* leaves, TreeDef* def, std::string* key = nullptr);
/// The tree of this form with these leaves.
nb::object unflatten(const TreeDef& def, const nb::object* leaves, std::size_t count);
/// True for what flatten takes for a leaf at once: an array, a value, a number.
bool plain_leaf(nb::handle h);

}  // namespace rlx::python
