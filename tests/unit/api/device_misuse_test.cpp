// Misuse of devices and memory of other libraries: plug-ins, options, DLPack, missing targets.
#include "rlx/compiler/preset_target.h"
#include "rlx/device/plugin_backend.h"
#include "rlx/runtime/dlpack.h"
#include "rlx/runtime/session.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

TEST_CASE("misuse: plug-ins") {
  REFUSED("it returns no table", register_plugin(nullptr));
  rlx_plugin table{};
  REFUSED("its table is too short: 0 bytes", register_plugin(&table));
  table.struct_size = sizeof table;
  REFUSED("its table has version 0.0", register_plugin(&table));
  REFUSED("cannot be loaded", load_plugin("/nowhere/libacme.so"));
  REFUSED("cannot be loaded", load_plugin("/"));
  REFUSED("load_plugin was given an empty path", load_plugin(""));
}

TEST_CASE("misuse: memory of other libraries") {
  REFUSED("no DLPack tensor was given", adopt(nullptr));
  dlpack::Managed foreign{};
  REFUSED("has version 0.0", adopt(&foreign));
  float value = 1;
  foreign.version = {dlpack::kMajor, dlpack::kMinor};
  foreign.tensor = {&value,  {dlpack::DeviceType::Cpu, 0}, 0, {dlpack::Code::Float, 32, 1}, nullptr,
                    nullptr, ~std::uint64_t{0} - 3};
  REFUSED("beyond all memory", adopt(&foreign));
  REFUSED("an empty tensor was given", to_dlpack(Tensor()));
}

TEST_CASE("misuse: devices that are not there") {
  REFUSED("", preset_target(static_cast<Device>(99)));
  REFUSED("", target_or_preset(static_cast<Device>(99)));
  REFUSED("", Session::for_target(static_cast<Device>(99)));
  Graph g("g");
  g.set_outputs({g.input("x", Shape({2}, DType::F32)) * 2.0});
  CompiledGraph f = Session::for_target(Device::Cuda).compile(std::move(g));
  REFUSED("was compiled for CUDA by Session::for_target and cannot run", f.run({{"x", {1, 2}}}));
  REFUSED("takes no option 'thread'", Session(Device::Cpu, {{"thread", "2"}}));
  REFUSED("it is not a number", Session(Device::Cpu, {{"threads", "two"}}));
}
