// The sub-commands of `rlx`: one file each, one register function each.
#pragma once

namespace CLI {
class App;
}

namespace rlx::cli {

/// The end of every help text.
inline constexpr const char* kExitStatus = "Exit status: 0 done, 1 the work failed, 2 the command line is wrong.";

// Each adds its sub-command, with a callback that does the work, to `app`. Callbacks throw rlx::Error, or
// UsageError (usage.h) where the command line is at fault; main prints it.
void register_bench(CLI::App& app);
void register_convert(CLI::App& app);
void register_chat(CLI::App& app);
void register_devices(CLI::App& app);
void register_embed(CLI::App& app);
void register_generate(CLI::App& app);
void register_inspect(CLI::App& app);
void register_ops(CLI::App& app);
void register_opt(CLI::App& app);
void register_rerank(CLI::App& app);
void register_run(CLI::App& app);
void register_search(CLI::App& app);

}  // namespace rlx::cli
