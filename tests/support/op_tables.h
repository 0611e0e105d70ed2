// The tables of op samples that the command and the Python package show. They are texts in the tree, so neither needs
// rlx::testing. `cmake --build --preset dev --target update_op_tables` writes them; a test compares them.
#pragma once

#include <string>

namespace rlx::test {

inline constexpr const char* kSamplesTable = "cli/op_samples.txt";
inline constexpr const char* kExamplesTable = "python/bindings/op_examples.txt";

/// Every sample of every op, for cli/op_samples.cpp.
std::string op_samples_table();
/// For the first sample of every op, by the op's text name: the dtypes that it accepts in place of f32, and the shapes
/// of its operands and results.
std::string op_examples_table();

}  // namespace rlx::test
