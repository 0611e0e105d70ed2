// The sub-commands of `rlx`: one file each, one register function each.
#pragma once

#include "cli/arguments.h"

namespace rlx::cli {

/// The end of every help text.
inline constexpr const char* kExitStatus = "Exit status: 0 done, 1 the work failed, 2 the command line is wrong.";

// Each function adds one sub-command and its callback to `line`. Callbacks throw rlx::Error, or UsageError (usage.h)
// for errors of the command line. main prints them.
void register_bench(CommandLine& line);
void register_convert(CommandLine& line);
void register_chat(CommandLine& line);
void register_devices(CommandLine& line);
void register_embed(CommandLine& line);
void register_generate(CommandLine& line);
void register_index(CommandLine& line);
void register_inspect(CommandLine& line);
void register_ops(CommandLine& line);
void register_opt(CommandLine& line);
void register_pull(CommandLine& line);
void register_rerank(CommandLine& line);
void register_run(CommandLine& line);
void register_search(CommandLine& line);

}  // namespace rlx::cli
