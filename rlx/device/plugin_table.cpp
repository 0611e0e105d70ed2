// Checks a plug-in's table before any function of it is called.
#include "rlx/device/plugin_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>

#include "rlx/error.h"

namespace rlx {
namespace {

// Bytes of the members that come first in every version of the table.
constexpr std::size_t kHead = offsetof(rlx_plugin, graph_version);

// The members that must not be null, by offset.
struct Member {
  std::string_view name;
  std::size_t offset;
};
#define RLX_MEMBER(m)           \
  Member {                      \
#m, offsetof(rlx_plugin, m) \
  }
constexpr Member kMembers[] = {
    RLX_MEMBER(name),
    RLX_MEMBER(devices),
    RLX_MEMBER(probe),
    RLX_MEMBER(option_infos),
    RLX_MEMBER(target_name),
    RLX_MEMBER(claimed_kinds),
    RLX_MEMBER(claims),
    RLX_MEMBER(compile),
    RLX_MEMBER(program_destroy),
    RLX_MEMBER(device_open),
    RLX_MEMBER(device_destroy),
    RLX_MEMBER(device_memory),
    RLX_MEMBER(device_lost),
    RLX_MEMBER(device_drain),
    RLX_MEMBER(stream_create),
    RLX_MEMBER(stream_destroy),
    RLX_MEMBER(stream_record),
    RLX_MEMBER(stream_wait),
    RLX_MEMBER(event_ready),
    RLX_MEMBER(event_failed),
    RLX_MEMBER(event_wait),
    RLX_MEMBER(event_destroy),
    RLX_MEMBER(put),
    RLX_MEMBER(get),
    RLX_MEMBER(buffer_native),
    RLX_MEMBER(buffer_destroy),
    RLX_MEMBER(run),
};
#undef RLX_MEMBER

ErrorCode error_code(rlx_code code) {
  switch (code) {
    case RLX_PLUGIN_INVALID_ARGUMENT: return ErrorCode::InvalidArgument;
    case RLX_PLUGIN_UNSUPPORTED: return ErrorCode::Unsupported;
    case RLX_PLUGIN_OUT_OF_MEMORY: return ErrorCode::OutOfMemory;
    case RLX_PLUGIN_DEVICE_LOST: return ErrorCode::DeviceLost;
    case RLX_PLUGIN_UNAVAILABLE: return ErrorCode::DeviceUnavailable;
    default: return ErrorCode::Internal;
  }
}

std::string_view way_out(rlx_code code) {
  switch (code) {
    case RLX_PLUGIN_OUT_OF_MEMORY:
      return "free what is not needed, run it with smaller dimensions, or run it on another device";
    case RLX_PLUGIN_DEVICE_LOST: return "make a new session, which reopens the device";
    case RLX_PLUGIN_UNAVAILABLE: return kPickAnother;
    default: return "report it to the authors of the plug-in, or run on another of rlx::available_devices()";
  }
}

// The text of a field that may have no terminating 0.
template <std::size_t N>
std::string_view field(const char (&text)[N]) {
  return {text, static_cast<std::size_t>(std::find(text, text + N, '\0') - text)};
}

}  // namespace

std::string forbidden_exception() {
  constexpr std::string_view what = "it threw an exception, which the plug-in table forbids";
  try {
    throw;
  } catch (const std::exception& e) {
    return concat_text(what, ": ", e.what());
  } catch (...) {
    return std::string(what);
  }
}

void HeldBuffers::make_room() {
  std::lock_guard lock(mutex_);
  if (handles_.capacity() <= rooms_) handles_.reserve(2 * rooms_ + 16);
  ++rooms_;
}
void HeldBuffers::release_room() {
  std::lock_guard lock(mutex_);
  --rooms_;
}
bool HeldBuffers::add(rlx_buffer* handle) noexcept {
  std::lock_guard lock(mutex_);
  const auto at = std::lower_bound(handles_.begin(), handles_.end(), handle, std::less<>());
  if (at != handles_.end() && *at == handle) return false;
  handles_.insert(at, handle);
  return true;
}
void HeldBuffers::remove(rlx_buffer* handle) noexcept {
  std::lock_guard lock(mutex_);
  const auto at = std::lower_bound(handles_.begin(), handles_.end(), handle, std::less<>());
  if (at != handles_.end() && *at == handle) handles_.erase(at);
}

PluginTable::PluginTable(const rlx_plugin* table, std::string where) : text_(concat_text("the plug-in ", where)) {
  const auto refuse = [&](std::string why, std::string hint) {
    throw Error(ErrorCode::Unsupported, concat_text(text_, ": ", why), std::move(hint));
  };
  const std::string rebuild = concat_text("build it with the rlx/device/plugin.h of this rlx, version ",
                                          RLX_PLUGIN_ABI_MAJOR, ".", RLX_PLUGIN_ABI_MINOR);
  if (!table)
    refuse(concat_text("it returns no table for version ", RLX_PLUGIN_ABI_MAJOR, ".", RLX_PLUGIN_ABI_MINOR), rebuild);
  if (table->struct_size < kHead)
    refuse(concat_text("its table is too short: ", table->struct_size, " bytes"), rebuild);
  if (table->abi_major != RLX_PLUGIN_ABI_MAJOR)
    refuse(concat_text("its table has version ", table->abi_major, ".", table->abi_minor, ", but this rlx reads ",
                       RLX_PLUGIN_ABI_MAJOR, ".x"),
           rebuild);
  if (table->struct_size < sizeof api_)
    refuse(concat_text("its table is too short: ", table->struct_size, " of ", sizeof api_, " bytes"), rebuild);
  std::memcpy(&api_, table, sizeof api_);
  for (const Member& m : kMembers) {
    const void* value = nullptr;
    std::memcpy(&value, reinterpret_cast<const char*>(&api_) + m.offset, sizeof value);
    if (!value) refuse(concat_text("its table has no '", m.name, "' (null)"), "set every member of version 1");
  }
  if (api_.graph_version != RLX_PLUGIN_GRAPH_VERSION)
    refuse(concat_text("it reads graphs of version ", api_.graph_version, ", but this rlx writes ",
                       RLX_PLUGIN_GRAPH_VERSION),
           rebuild);
  name_ = api_.name;
  text_ = concat_text("the plug-in '", name_, "' (", where, ")");
  std::string_view left = api_.devices;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(' '), left.size());
    const std::string_view word = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (word.empty()) continue;
    const std::optional<Device> device = parse_device(word);
    if (!device)
      refuse(concat_text("it serves '", word, "', which is not a device"), "use the names that `rlx devices` prints");
    devices_.push_back(*device);
  }
  if (devices_.empty()) refuse("it serves no device", "set `devices` to names that `rlx devices` prints");
}

void PluginTable::fail(std::string_view device, std::string_view call, rlx_code code, const rlx_error& error,
                       const std::string& thrown) const {
  const std::string_view said = thrown.empty() ? field(error.message) : std::string_view(thrown);
  const std::string_view hint = field(error.hint);
  throw Error(
      error_code(code),
      concat_text(device.empty() ? std::string() : concat_text("device ", device, ", "), text_, ": ", call, " failed",
                  thrown.empty() && (code < 0 || code > RLX_PLUGIN_INTERNAL)
                      ? concat_text(" with code ", code, ", which the plug-in table does not define")
                      : std::string(),
                  said.empty() ? std::string_view(", without a reason") : std::string_view(": "), said),
      std::string(hint.empty() ? way_out(code) : hint));
}

void PluginTable::throw_forked(std::string_view device) const {
  throw Error(
      ErrorCode::DeviceLost,
      concat_text(device.empty() ? std::string() : concat_text("device ", device, ", "), text_, " ", kForkedAway),
      std::string(kForkHint));
}

void PluginTable::note(const char* call, const char* thrown) const noexcept {
  if (noted_.exchange(true)) return;
  std::fprintf(stderr, "note: %s: %s threw an exception, which the plug-in table forbids: %s\n", text_.c_str(), call,
               thrown);
}

void PluginTable::broke(std::string_view device, std::string_view call, std::string_view how) const {
  throw Error(ErrorCode::Internal,
              concat_text("device ", device, ", ", text_, ": ", call, " reported success, but ", how),
              std::string(way_out(RLX_PLUGIN_INTERNAL)));
}

}  // namespace rlx
