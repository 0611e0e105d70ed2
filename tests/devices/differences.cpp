// The table of the device under test.
#include "tests/devices/differences.h"

#include <algorithm>

#include "rlx/device/registry.h"
#include "tests/devices/test_device.h"

namespace rlx::test {
namespace {

const Difference* find_difference(Difference::What what, OpKind kind) {
  for (const Difference& d : backend_for(test_device())->differences())
    if (d.what == what && std::find(d.kinds.begin(), d.kinds.end(), kind) != d.kinds.end()) return &d;
  return nullptr;
}

bool loses_a_subnormal() {
  Graph g("subnormal");
  const Expr x = g.input("x", {{4}, DType::F32});
  g.set_outputs({x + x});
  return Session(test_device()).compile(std::move(g)).run({{"x", std::vector<float>(4, 0x1p-140F)}})[0][0] == 0;
}

}  // namespace

bool has_difference(Difference::What what, OpKind kind) { return find_difference(what, kind) != nullptr; }

bool takes_subnormals_for_zero() {
  const Difference* d = find_difference(Difference::What::Subnormals, OpKind::Binary);
  static const bool loses = loses_a_subnormal();
  return d && (!d->on_some || loses);
}

}  // namespace rlx::test
