// The text of graphs: prints a graph, and parses the text back to an equal graph.
//
//   graph @name {
//     symbol seq [1, 512] div 16
//     %0 = input() {name = "x"} : [1, seq] f32
//     %1:2 = top_k(%0) {k = 4} : [1, 4] f32, [1, 4] i32 @"layer0/route"
//     %2 = gelu(%1#0) : [1, 4] f32
//     return %2, %1#1
//     set_state "kv" %2
//   }
//
// * A value is %id or %id#result; ids are numbers or words, each defined before its use. `//` starts a comment.
// * Attributes in braces are omitted when they have their default value. Sub-graphs nest there.
// * Tensors: `[2] f32 {1, 0.5}`, complex elements `(1, -2)`. Large or non-finite ones print as `0x` and their bytes in
// memory order. The parser also accepts the elements `inf`, `-inf` and `nan` where the dtype has them.
// * Result types may be omitted, except for ops whose operands and attributes do not determine them (input, param,
// constant, cast, reshape, ...).
// * Numbers print in the shortest decimal text that reads back exactly. A NaN attribute prints its bits as `0x` and 16
// digits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rlx/ir/graph.h"

namespace rlx {

/// How much of a graph is printed.
struct TextOptions {
  bool labels = true;                      // @"label" after each labelled node
  bool bodies = true;                      // false: sub-graphs as `@name(add, gelu)`, which does not parse back
  bool origins = false;                    // a trailing comment with the user's line, the pass and the nodes replaced
  std::int64_t max_decimal_elements = 64;  // constants above print as hexadecimal bytes
  std::int64_t max_elements = -1;          // constants above print as `...`, which does not parse back; -1: none
};

/// The text of `g`. It parses back to an equal graph unless `max_elements` shortened a constant.
std::string print_text(const Graph& g, const TextOptions& options = {});
/// The text of one node, without line break: `%2 = gelu(%1) : [4] f32`.
std::string print_node(const Graph& g, NodeId id, const TextOptions& options = {});
/// The attributes of `op` as printed between braces, or an empty string: `axis = 1, keep_dims = true`.
std::string print_attrs(const OpBox& op, const TextOptions& options = {});

/// Parses a graph. Throws BadFile with `file`:line:column, what was expected and what was found. Shapes are inferred
/// and must equal the written ones.
Graph parse_text(std::string_view text, std::string_view file = "graph text");

}  // namespace rlx
