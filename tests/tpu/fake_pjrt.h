// What a test tells the stand-in for a PJRT plug-in (fake_pjrt.cpp), and what it asks it.
#pragma once

#include <cstddef>

namespace rlx::test {

/// How a function of its table behaves.
enum class FakeCall : int {
  Works,
  Fails,   // gives an error
  Idle,    // says that it succeeded and leaves its results null
  Absent,  // is null in the table
  Late,    // what it started fails: its event does
};

/// The library exports one of these as `fake_pjrt`.
struct FakeControl {
  void (*set)(std::size_t index, FakeCall how, int code);  // of the function at that place of the table
  void (*reset)();                                         // everything works
  /// Objects that were made and not given back: errors, events, buffers, executables, clients.
  std::size_t (*live)(int kind);
  bool (*has)(std::size_t index);  // a function at that place of the table
  /// Calls of that function since the last reset.
  std::size_t (*calls)(std::size_t index);
  void (*version)(int major, std::size_t struct_size);  // of the table; 0: as it should be
  void (*devices)(std::size_t count);
};

}  // namespace rlx::test
