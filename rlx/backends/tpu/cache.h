// A folder of compiled programs, which saves later processes the compile.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rlx/backends/tpu/client.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx::tpu {

/// The key of a compiled program: its text, the compile options, and the plug-in with its platform.
Fingerprint cache_key(const Client& client, std::string_view text, std::string_view compile_options);

/// The bytes stored under `key` in `folder`; none if the file is missing or damaged.
std::optional<std::string> read_cached(const std::string& folder, const Fingerprint& key);
/// Stores them in a temporary file, which then replaces the old one. A folder that cannot be written is not an error:
/// it is reported once on standard error, in the name of `who`.
void write_cached(const std::string& folder, const Fingerprint& key, std::string_view bytes, std::string_view who);

}  // namespace rlx::tpu
