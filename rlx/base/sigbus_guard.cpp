// A table of mappings that a signal handler can read, and the SIGBUS handler.
#include "rlx/base/sigbus_guard.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "rlx/base/forks.h"
#include "rlx/base/output_file.h"
#include "rlx/error.h"

namespace rlx {
namespace {

struct MappingRecord {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::size_t> size{0};
  std::atomic<char*> path{nullptr};
  std::atomic<bool> kept{false}, lost{false};
  FileStatus status{};  // never read by a handler
};
std::array<MappingRecord, 4096> mapping_records;
std::atomic<std::size_t> records_used{0};  // later records were never used
std::atomic<int> lost_mappings{0};
std::atomic<int> live_mappings{0}, guarded_reads{0};
// For code outside handlers. Never destroyed: threads may outlive exit().
ProcessMutex& mapping_mutex() {
  static auto& mutex = *new ProcessMutex;
  return mutex;
}

std::atomic<bool> handler_installed{false};
std::atomic<OnLostPage> otherwise_do{OnLostPage::End};
struct sigaction handler_before {};

MappingRecord* record_at(std::uintptr_t address) noexcept {
  const std::size_t used = records_used.load();
  for (std::size_t i = 0; i < used; ++i) {
    MappingRecord& r = mapping_records[i];
    const std::uintptr_t begin = r.begin.load();
    if (begin != 0 && address >= begin && address - begin < r.size.load()) return &r;
  }
  return nullptr;
}

// Only async-signal-safe calls.
void put_text(const char* text) noexcept {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

extern "C" void on_lost_page(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  MappingRecord* r = record_at(address);
  const bool warn = otherwise_do.load() == OnLostPage::Warn;
  if (r && (r->kept.load() || guarded_reads.load() > 0 || warn)) {
    // As a rule all later pages are lost too. Pages that are not also read as zeros and are reported.
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = address / page * page, end = r->begin.load() + r->size.load();
    void* zeros = ::mmap(reinterpret_cast<void*>(first), end - first, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros != MAP_FAILED) {
      const bool noticed_now = !r->lost.exchange(true);
      if (noticed_now) ++lost_mappings;
      if (noticed_now && warn && !r->kept.load() && guarded_reads.load() == 0) {
        const char* path = r->path.load();
        put_text("rlx: warning: \"");
        put_text(path ? path : "?");
        put_text("\" was made shorter, or its disk failed, while its arrays were in use: what is lost reads as 0\n");
      }
      return;
    }
  }
  if (r && otherwise_do.load() == OnLostPage::Say) {
    const char* path = r->path.load();
    put_text("rlx: bad file: \"");
    put_text(path ? path : "?");
    put_text(
        "\" was made shorter, or its disk failed, while it was read\n"
        "  hint: run the command again; write a new file and rename it instead of writing over one in use\n");
    remove_unfinished_files();
    ::_exit(1);
  }
  if ((handler_before.sa_flags & SA_SIGINFO) != 0 && handler_before.sa_sigaction) {
    handler_before.sa_sigaction(signal, info, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(signal);
  } else {  // returning retries the read, which ends the process as without a handler
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(signal, &standard, nullptr);
  }
}

void install_handler() noexcept {
  if (handler_installed.load(std::memory_order_relaxed) || handler_installed.exchange(true)) return;
  struct sigaction action {};
  action.sa_sigaction = on_lost_page;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &handler_before);
}

}  // namespace

void install_sigbus_guard(OnLostPage otherwise) noexcept {
  otherwise_do = otherwise;
  if (otherwise != OnLostPage::Warn || live_mappings.load() > 0) install_handler();
}

GuardedReads::GuardedReads() noexcept : counted_(live_mappings.load(std::memory_order_relaxed) > 0) {
  if (!counted_) return;
  ++guarded_reads;
  install_handler();
}

GuardedReads::~GuardedReads() {
  if (counted_) --guarded_reads;
}

void GuardedReads::check(const void* address) {
  if (!any_damaged_mapping()) return;
  if (const auto file = damaged_file_at(address))
    throw Error(ErrorCode::BadFile,
                concat_text("\"", *file, "\" was made shorter, or its disk failed, while it was in use"),
                "load it again; write a new file and rename it instead of writing over one in use");
}

void GuardedReads::check_readable(const void* address, std::size_t size) {
  if (live_mappings.load(std::memory_order_relaxed) == 0 || size == 0) return;
  {
    const std::lock_guard lock(mapping_mutex());
    if (record_at(reinterpret_cast<std::uintptr_t>(address)) == nullptr) return;
  }
  const GuardedReads reads;
  (void)static_cast<const volatile unsigned char*>(address)[size - 1];
  check(address);
}

void guard_mapping(const void* address) noexcept {
  const std::lock_guard lock(mapping_mutex());
  MappingRecord* r = record_at(reinterpret_cast<std::uintptr_t>(address));
  if (!r) return;
  r->kept = true;
  install_handler();
}

bool any_damaged_mapping() noexcept { return lost_mappings.load(std::memory_order_relaxed) != 0; }

std::optional<std::string> damaged_file_at(const void* address) {
  const std::lock_guard lock(mapping_mutex());
  const MappingRecord* r = record_at(reinterpret_cast<std::uintptr_t>(address));
  if (!r || !r->lost.load()) return std::nullopt;
  const char* path = r->path.load();
  return std::string(path ? path : "a mapped file");
}

std::optional<std::string> changed_file_at(const void* address) {
  const std::lock_guard lock(mapping_mutex());
  const MappingRecord* r = record_at(reinterpret_cast<std::uintptr_t>(address));
  const char* path = r ? r->path.load() : nullptr;
  struct stat now {};
  // Another file at that path leaves the mapped file unchanged.
  if (!path || ::stat(path, &now) != 0 || now.st_dev != r->status.device || now.st_ino != r->status.inode)
    return std::nullopt;
  const FileStatus s = detail::file_status(now);
  if (s.size == r->status.size && s.mtime_ns == r->status.mtime_ns) return std::nullopt;
  return std::string(path);
}

FileStatus detail::file_status(const struct stat& info) {
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
          static_cast<std::uint64_t>(info.st_size),
          std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

void detail::note_mapping(const void* begin, const FileStatus& status, const std::string& path) {
  const std::lock_guard lock(mapping_mutex());
  for (std::size_t i = 0; i < mapping_records.size(); ++i) {
    MappingRecord& r = mapping_records[i];
    if (r.begin.load() != 0) continue;
    r.path = ::strdup(path.c_str());  // null: the mapping is known without its path
    r.size = status.size;
    r.status = status;
    r.kept = false, r.lost = false;
    r.begin = reinterpret_cast<std::uintptr_t>(begin);
    if (i >= records_used.load()) records_used = i + 1;
    ++live_mappings;
    if (otherwise_do.load() == OnLostPage::Warn) install_handler();
    return;
  }
}

void detail::forget_mapping(const void* begin) noexcept {
  const std::lock_guard lock(mapping_mutex());
  MappingRecord* r = record_at(reinterpret_cast<std::uintptr_t>(begin));
  if (!r) return;
  r->begin = 0;
  --live_mappings;
  if (r->lost.exchange(false)) --lost_mappings;
  std::free(r->path.exchange(nullptr));
}

}  // namespace rlx
