// A process that was forked has none of the threads that serve a device: what its parent opened says so, and never
// hangs.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/session.h"
#include "tests/devices/test_device.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

Graph doubled() {
  Graph g("doubled");
  const Expr x = g.input("x", test::f32({4}));
  g.set_outputs({x + x});
  return g;
}

// What f() returns in a child, which is not to take longer than a minute.
template <class F>
int in_child(F&& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    int result = 99;
    try {
      result = f();
    } catch (...) {
    }
    ::_exit(result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool is_told(const std::string& text) { return test::contains(text, "before this process was forked"); }

TEST_CASE("device: a forked process is told that the device is its parent's") {
  if (!test::device_here()) return;
  const DeviceId id = test::test_device();
  CompiledGraph f = Session(id).compile(doubled());
  const NamedTensors x{{"x", Tensor::full(test::f32({4}), 3)}};
  REQUIRE(f.run_typed(x)[0].at(0) == 6);
  Tensor there = to(x.at("x"), id);
  CHECK(in_child([&] { return test::error_text([&] { (void)f.run_typed(x); }).empty() ? 1 : 0; }) == 0);
  CHECK(in_child([&] { return is_told(test::error_text([&] { (void)there.to_host(); })) ? 0 : 1; }) == 0);
  CHECK(in_child([&] { return is_told(test::error_text([&] { (void)Session(id); })) ? 0 : 1; }) == 0);
  CHECK(in_child([&] { return is_told(unavailable_reason(id.kind)) ? 0 : 1; }) == 0);
  CHECK(in_child([&] { return Session().compile(doubled()).run_typed(x)[0].at(0) == 6 ? 0 : 1; }) == 0);  // the cpu
  CHECK(in_child([&] {
          { const CompiledGraph gone = std::move(f); }
          there = Tensor();
          return 0;
        }) == 0);
  CHECK(f.run_typed(x)[0].at(0) == 6);  // the parent's goes on
}

}  // namespace
}  // namespace rlx
