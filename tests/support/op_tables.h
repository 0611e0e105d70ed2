// The tables of op samples that the command and the Python package show: texts in the tree, so that neither needs
// rlx::testing. `cmake --build --preset dev --target update_op_tables` writes them; a test compares them.
#pragma once

#include <string>

namespace rlx::test {

inline constexpr const char* kSamplesTable = "cli/op_samples.txt";
inline constexpr const char* kExamplesTable = "python/bindings/op_examples.txt";

/// Every sample of every op: cli/op_samples.cpp reads it.
std::string op_samples_table();
/// Of the first sample of every op by its name in text: the dtypes that it takes in place of f32, and the shapes that
/// go in and come out.
std::string op_examples_table();

}  // namespace rlx::test
