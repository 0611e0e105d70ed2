// The plug-in that RLX_TPU_PLUGIN or LIBTPU_PATH names, with one thing beside: it tells whether the calling thread is
// inside of it. What is allocated there is the plug-in's, and what is not is ours.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "rlx/backends/tpu/abi.h"

namespace abi = rlx::tpu::abi;

namespace {

constexpr std::size_t kFunctions = 192;
struct Table {
  abi::Api api{};
  std::array<abi::Function, kFunctions> functions{};
};
Table table;
std::array<abi::Function, kFunctions> real{};
thread_local int depth = 0;

// Each takes one pointer, and what gives nothing back leaves its result alone.
template <std::size_t I>
void* entry(void* arguments) {
  struct Inside {
    Inside() { ++depth; }
    ~Inside() { --depth; }
  } const inside;
  return reinterpret_cast<void* (*)(void*)>(real[I])(arguments);
}

template <std::size_t... I>
void wrap(const abi::Function* functions, std::size_t count, std::index_sequence<I...>) {
  ((I < count && functions[I]
        ? (void)(real[I] = functions[I], table.functions[I] = reinterpret_cast<abi::Function>(&entry<I>))
        : void()),
   ...);
}

const abi::Api* open_real() {
  for (const char* name : {"RLX_TPU_PLUGIN", "LIBTPU_PATH"}) {
    const char* const path = std::getenv(name);
    if (!path || !*path) continue;
    void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* const symbol = library ? ::dlsym(library, "GetPjrtApi") : nullptr;
    return symbol ? reinterpret_cast<const abi::Api* (*)()>(symbol)() : nullptr;
  }
  return nullptr;
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) bool counted_pjrt_is_inside() { return depth != 0; }

__attribute__((visibility("default"))) const abi::Api* GetPjrtApi() {
  static const abi::Api* const opened = [] {
    const abi::Api* const api = open_real();
    if (!api || api->struct_size < sizeof(abi::Api)) return api;
    table.api = *api;
    const std::size_t count = (api->struct_size - sizeof(abi::Api)) / sizeof(abi::Function);
    table.api.struct_size = sizeof(abi::Api) + std::min(count, kFunctions) * sizeof(abi::Function);
    wrap(reinterpret_cast<const abi::Function*>(api + 1), count, std::make_index_sequence<kFunctions>());
    return const_cast<const abi::Api*>(&table.api);
  }();
  return opened;
}
}
