// Flattens and unflattens trees of arrays: tuples, lists, dicts, dataclasses and registered classes.
#pragma once

#include "python/bindings/common.h"

namespace rlx::python {

enum class TreeKind : std::uint8_t { Leaf, None, Tuple, NamedTuple, List, Dict, DataClass, Registered };

/// A node of a tree, in preorder: its children follow it.
struct TreeNode {
  TreeKind kind = TreeKind::Leaf;
  std::uint32_t arity = 0;
  nb::object type;  // of NamedTuple, DataClass, Registered, and of an OrderedDict
  nb::object keys;  // keys of a Dict, field names of a DataClass, or the static part of a Registered
};

/// The structure of a tree, without its leaves.
struct TreeDef {
  std::vector<TreeNode> nodes;
  std::size_t leaves = 0;
  bool operator==(const TreeDef& other) const;
  std::string text() const;
};

/// Appends the bytes of `v`, which tell it from other values of its type, to the key of a call.
template <class T>
void append_bytes(std::string& key, const T& v) {
  key.append(reinterpret_cast<const char*>(&v), sizeof v);
}

/// Flattens `tree`: writes its leaves to `leaves` and its structure to `def`; either may be null. If `key` is given,
/// appends the kinds and keys of the inner nodes to it: equal bytes mean equal structures while the types and keys
/// live.
void flatten(nb::handle tree, std::vector<nb::object>* leaves, TreeDef* def, std::string* key = nullptr);
/// The tree with this structure and these leaves.
nb::object unflatten(const TreeDef& def, const nb::object* leaves, std::size_t count);
/// True for objects that flatten takes as leaves without a look inside: an array, a value, a number.
bool plain_leaf(nb::handle h);

}  // namespace rlx::python
