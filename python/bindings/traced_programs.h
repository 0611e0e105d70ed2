// Programs of functions that are traced at every call. Graphs of one structure share a program: constants that differ
// from call to call are its inputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/bindings/calls.h"

namespace rlx::python {

/// Something that must be the same object as when a kept program was traced, or the program is stale.
struct Guard {
  enum class Kind : std::uint8_t { Entry, Absent, Attribute };  // of a dictionary, or an attribute of an object
  Kind kind = Kind::Entry;
  nb::object container, name, expected;
  bool holds() const;
};
/// Reads the list of rlx._captures.guards.
std::vector<Guard> guards_from(nb::handle list);

/// The program of one signature of a function that is traced at every call.
struct LiveProgram {
  std::shared_ptr<ProgramEntry> program;
  std::vector<nb::object> constants;  // arrays that follow the leaves
  TreeDef out_tree;
  nb::object record;  // what the trace gave, for functions that ask for it, or None
  std::vector<Guard> guards;
  bool kept = false;           // it runs without a trace while all guards hold
  std::uint32_t failures = 0;  // of guards
  std::uint32_t wait = 1;      // traced calls until the captures are looked at again
  std::uint64_t used = 0;
  bool current() const;
};

/// Appends arrays to the leaves of a call.
void append_arrays(CallScratch& s, const std::vector<nb::object>& arrays);

/// Binds `program_of`.
void bind_traced_programs(nb::module_& m);

}  // namespace rlx::python
