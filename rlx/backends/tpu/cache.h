// Compiled programs kept in a folder, so that a later process need not compile them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rlx/backends/tpu/client.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx::tpu {

/// What a compiled program depends on: its text, the compile options, and the plug-in with its platform.
Fingerprint cache_key(const Client& client, std::string_view text, std::string_view compile_options);

/// The bytes that were kept under `key` in `folder`; none where there is no such file, or one that is damaged.
std::optional<std::string> read_cached(const std::string& folder, const Fingerprint& key);
/// Keeps them, beside what is there and then in its place. A folder that takes nothing is no error: it is said once, on
/// standard error, in the name of `who`.
void write_cached(const std::string& folder, const Fingerprint& key, std::string_view bytes, std::string_view who);

}  // namespace rlx::tpu
