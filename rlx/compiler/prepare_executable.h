// The executable of a prepare graph: computes values of weights on a device. Internal.
#pragma once

#include <memory>
#include <span>

#include "rlx/device/backend.h"
#include "rlx/ir/module.h"

namespace rlx {

/// The program of `wanted`, values of a prepare graph: the Params that they read are its Inputs, by name.
Graph program_of_prepared(const Graph& prepare, std::span<const Value> wanted);

/// Code for such a program, without a device's other parts. Null when `target` does not run all of it.
std::unique_ptr<const Executable> compile_prepared(const Graph& program, const Backend& backend, const Target& target,
                                                   const BackendOptions& options);

}  // namespace rlx
