// Runs the counter on any device.
#include "tests/support/counter_program.h"

#include <doctest/doctest.h>

#include <cstring>

#include "rlx/runtime/device_ext.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx::test {

Graph counter() {
  Graph g("counter");
  const Expr x = g.input("x", f32({4})), w = g.param("w", f32({4}));
  const Expr total = g.state("total", Tensor::zeros(f32({4}))), count = g.state("count", Tensor::zeros(f32({})));
  g.set_state("count", count + 1.0);
  g.set_state("total", total + x);
  g.set_outputs({total, x * w});
  return g;
}

CompiledGraph compiled_counter(const Session& session) {
  CompiledGraph f = session.compile(counter());
  f.set_param("w", fours(2));
  return f;
}

std::vector<float> values_at(const CompiledGraph& f, const Slot& s) {
  std::vector<float> out(static_cast<std::size_t>(s.count));
  std::memcpy(out.data(), f.arena_ptr() + s.offset, out.size() * sizeof(float));
  return out;
}

void check_kinds_of_runs(const Session& session) {
  CompiledGraph f = compiled_counter(session);
  CHECK(f.device() == session.device());
  CHECK(f.run({{"x", fours(1)}}) == std::vector<std::vector<float>>{fours(0), fours(2)});
  const std::vector<float> twos = fours(2);
  const TensorView x{twos.data(), DType::F32, {}, 16};
  const std::span<const Slot> slots = f.run_slots({&x, 1});
  CHECK(values_at(f, slots[0]) == fours(1));
  CHECK(values_at(f, slots[1]) == fours(4));
  const std::vector<TensorView> views = f.run_raw({{"x", fours(1)}});
  CHECK(static_cast<const float*>(views[0].data)[3] == 3);
  std::vector<float> a(4), b(4);
  const MutableTensorView out[] = {{a.data(), DType::F32, {}, 16}, {b.data(), DType::F32, {}, 16}};
  f.run_into({&x, 1}, out);
  CHECK(a == fours(4));
  CHECK(b == fours(4));
  const std::vector<NodeTime> times = f.profile({&x, 1});
  REQUIRE(!times.empty());
  CHECK(times[0].ns > 0);
  CHECK(f.read_state("count").at(0) == 5);
  CompiledGraph c = f.clone();
  CHECK(c.run({{"x", fours(1)}})[1] == fours(2));
  f.set_param("w", {1, 2, 3, 4});
  CHECK(f.run({{"x", fours(2)}})[1] == std::vector<float>{2, 4, 6, 8});
  CHECK(c.run({{"x", fours(2)}})[1] == fours(4));
  CHECK(f.read_state("total").to_f32() == fours(10));
  CHECK(f.read_state("count").at(0) == 6);
  f.write_state("total", Tensor::full(f32({4}), 7));
  CHECK(f.run({{"x", fours(1)}})[0] == fours(7));
  f.reset();
  CHECK(f.run({{"x", fours(1)}})[0] == fours(0));
  CHECK(c.read_state("count").at(0) == 7);
}

void check_runs_in_flight(const Session& session) {
  CompiledGraph f = compiled_counter(session);
  for (int i = 0; i < 20; ++i) f.commit_no_wait({{"x", fours(1)}});
  const std::span<const Slot> slots = f.sync_pending();
  REQUIRE(slots.size() == 2);
  CHECK(values_at(f, slots[0]) == fours(19));
  CHECK(f.sync_pending().empty());
  f.commit_no_wait({{"x", fours(2)}});
  drain_device(session.device());
  CHECK(values_at(f, f.sync_pending()[0]) == fours(20));
  const auto all = f.run_pipelined({{{"x", fours(1)}}, {{"x", fours(2)}}, {{"x", fours(1)}}});
  REQUIRE(all.size() == 3);
  CHECK(all[0][0] == fours(22));
  CHECK(all[1][0] == fours(23));
  CHECK(all[2][0] == fours(25));
  CHECK(all[1][1] == fours(4));
  f.commit_no_wait({{"x", fours(1)}});
  { const CompiledGraph gone = std::move(f); }
  drain_device(session.device());
}

void check_device_tensors(const Session& session) {
  CompiledGraph f = compiled_counter(session);
  std::vector<Tensor> out = f.run_device({{"x", Tensor::full(f32({4}), 3)}});
  CHECK(out[1].device() == DeviceId(session.device()));
  for (int i = 0; i < 3; ++i) out = f.run_device({{"x", out[1]}});  // doubles it
  CHECK(out[1].to_host().to_f32() == fours(48));
  CHECK(out[0].reshaped({2, 2}).to_host().to_f32() == fours(3 + 6 + 12));
  CHECK(f.run_typed({{"x", out[1]}})[1].to_f32() == fours(96));
  CHECK(to(out[1], Device::Cpu).to_f32() == fours(48));
  CompiledGraph host = compiled_counter(Session());
  CHECK(contains(error_text([&] { host.run_typed({{"x", out[1]}}); }), "copy it there with rlx::to"));
  CHECK(host.run_device({{"x", to(out[1], Device::Cpu)}})[1].to_f32() == fours(96));
  // Inputs set by name serve every kind of run, like inputs passed by name.
  f.set_input("x", out[1]);
  CHECK(f.run()[1] == fours(96));
  CHECK(f.run_typed({})[1].to_f32() == fours(96));
  CHECK(f.run_device(NamedTensors())[1].to_host().to_f32() == fours(96));
  f.commit_no_wait();
  CHECK(values_at(f, f.sync_pending()[1]) == fours(96));
  f.bind_handle("x", out[1]);
  CHECK(f.read_handle("x").to_f32() == fours(48));
  CHECK(f.clone().run()[1] == fours(96));
}

void check_shared_states(const Session& session) {
  CompiledGraph a = compiled_counter(session), b = compiled_counter(session);
  CHECK(b.share_state_from(a) == 2);
  for (int i = 0; i < 30; ++i) {
    a.commit_no_wait({{"x", fours(1)}});
    b.commit_no_wait({{"x", fours(2)}});
  }
  CHECK(a.read_state("total").to_f32() == fours(90));
  CHECK(b.read_state("count").at(0) == 60);
  b.reset();
  CHECK(a.run({{"x", fours(1)}})[0] == fours(0));
  a.write_state("total", Tensor::full(f32({4}), 7));
  CHECK(b.run({{"x", fours(1)}})[0] == fours(7));
}

}  // namespace rlx::test
