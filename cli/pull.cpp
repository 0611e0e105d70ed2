// `rlx pull`: a model from a hub into the cache; prints its path.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/model_names.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/hub/curl_transport.h"
#include "rlx/hub/hub.h"

namespace rlx::cli {
namespace {

struct PullArgs {
  std::string name;
  int retries = HubSettings{}.retries;
  bool verify = false, quiet = false;
};

void pull(const PullArgs& args) {
  const std::optional<HubName> name = parse_hub_name(args.name);
  if (!name)
    throw UsageError(ErrorCode::InvalidArgument, concat_text("'", args.name, "' is not the name of a model on a hub"),
                     args.name.find("://") != std::string::npos
                         ? "give what stands after the host, ORG/NAME; HF_ENDPOINT names another hub"
                         : "names are ORG/NAME, ORG/NAME:FILE or ORG/NAME@REVISION");
  HubSettings settings = HubSettings::from_environment();
  settings.retries = args.retries;
  CurlTransport transport;
  PullNotes notes(args.quiet);
  PullOptions options = notes.options();
  options.verify = args.verify;
  const std::string path = pull_model(*name, transport, settings, options);
  notes.clear();
  std::printf("%s\n", path.c_str());
}

}  // namespace

void register_pull(CommandLine& line) {
  const Command cmd = line.add_command("pull", "Download a model from a hub (huggingface.co) and print its path");
  auto args = std::make_shared<PullArgs>();
  cmd.add_option("name", args->name,
                 "ORG/NAME, with :FILE a file or a type of its GGUF files (:Q4_K_M), with @REVISION a branch or a tag")
      .required()
      .type_name("REPO[@REVISION][:FILE]");
  cmd.add_flag("--verify", args->verify, "Compare the checksums of files that are in the cache too");
  cmd.add_option("--retries", args->retries, "Attempts in a row that may fail").in_range(0, 1000).show_default();
  cmd.add_flag("--quiet", args->quiet, "Print no progress and no notes");
  cmd.footer(std::string("HF_TOKEN is the token for private and gated models, HF_ENDPOINT another hub or a mirror, "
                         "HF_HUB_CACHE the folder of the cache. What was interrupted continues with the same "
                         "command.\n") +
             kExitStatus);
  cmd.callback([args] { pull(*args); });
}

}  // namespace rlx::cli
