#include "record/unwind/unwind_tables.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/handle.h"
#include "format/base/text.h"
#include "record/base/background_threads.h"
#include "record/process/unwind_file.h"
#include "record/unwind/unwind_cache.h"
#include "record/unwind/unwind_keys.h"
#include "symbolize/unwind/unwind_builder.h"

namespace xpu {
namespace {

// Builds a table and verifies it.
Result<std::shared_ptr<const UnwindTableBytes>> BuildChecked(const ElfImage& image,
                                                             const ElfImage* debug = nullptr,
                                                             UnwindStats* stats = nullptr) {
  XPU_ASSIGN_OR_RETURN(UnwindTableBytes built, BuildUnwindTable(image, stats, debug));
  UnwindTable table;
  if (!table.Open(built.bytes().data(), built.bytes().size()) || !table.IsSound()) {
    return Error{ErrorKind::kUnsupported, "its call frame information is invalid", {}};
  }
  return std::make_shared<const UnwindTableBytes>(std::move(built));
}

std::chrono::steady_clock::time_point At(uint64_t monotonic_ns) {
  return std::chrono::steady_clock::time_point(
      std::chrono::nanoseconds(std::min<uint64_t>(monotonic_ns, INT64_MAX)));
}

// Takes about 20 ms to build.
constexpr uint64_t kSmallFileBytes = uint64_t{8} << 20;
constexpr size_t kMaxOpenFiles = 200;  // of the usual 1024 descriptors
constexpr size_t kMaxPaths = 8;        // for one file

using TableBytes = std::shared_ptr<const UnwindTableBytes>;

}  // namespace

class UnwindTables::Impl {
 public:
  explicit Impl(const Options& options);
  ~Impl();

  Id Request(File file);
  bool WaitUntil(uint64_t deadline_ns);
  void WaitForLookups(uint64_t deadline_ns);
  std::vector<Id> TakeFinished();

  // Written by one thread at a time under `mutex`; a deque, so that entries do not move.
  struct Entry {
    File file;
    State state = State::kPending;
    TableBytes bytes;
    std::vector<ElfSegment> segments;
    uint64_t device = 0, inode = 0;  // of the file that was found
    bool unreachable = false;        // failed, but other paths may lead to it
    bool reported = false;           // the failure is in `failures`
    std::vector<Id> followers;       // other requests for the same file
  };
  Entry& entry(Id id) {
    XPU_CHECK(id >= 1 && id <= entries.size());
    return entries[id - 1];
  }

  // Reports a failure once per file.
  void ReportFailure(Entry& failed, const std::string& path, std::string reason) {
    if (std::exchange(failed.reported, true)) return;
    failures.push_back({path, std::move(reason)});
    ++counts.failed;
  }

  std::mutex mutex;
  std::deque<Entry> entries;
  std::vector<Id> finished;
  std::vector<Failure> failures;
  Counts counts;
  std::string cache_problem;
  UniqueFd event;

 private:
  struct Build {
    Id id;
    UnwindFile file;
    bool operator>(const Build& other) const { return file.bytes > other.file.bytes; }
  };

  enum class Trouble {
    kUnreachable,  // no path led to it
    kNotCode,      // not an error: no ELF file, or one without call frame information
    kBroken,
  };
  static Trouble TroubleOf(const Error& error_of_build) {
    return error_of_build.kind == ErrorKind::kNotFound ? Trouble::kNotCode : Trouble::kBroken;
  }
  // Called with the mutex held.
  void AddPaths(Id id, const File& file);
  void Enqueue(Id id);
  bool HasWork(bool small_only) const;
  void Finish(Id id, State state);
  void Fail(Id id, Trouble trouble, const Error& error, const std::string& path);

  // Called by the threads, without the mutex.
  void Work(bool small_only);
  void Identify(Id id);
  bool Follows(Id id, const UnwindFile& file);
  void BuildFile(Build job);
  void BuildVdso(Id id);
  void Publish(Id id, TableBytes bytes, std::vector<ElfSegment> segments, uint64_t Counts::*from);

  std::condition_variable work_;
  std::condition_variable idle_;
  std::unordered_map<std::string, Id> ids_;
  std::deque<Id> fresh_;
  // A heap by size, with the smallest file at the front.
  std::vector<Build> builds_;
  size_t open_files_ = 0;
  size_t lookups_ = 0;  // threads that are looking for a file
  size_t pending_ = 0;
  uint64_t table_bytes_ = 0;
  bool stop_ = false;
  std::optional<UnwindCache> cache_;
  const std::chrono::milliseconds delay_;
  BackgroundThreads threads_;
};

UnwindTables::Impl::Impl(const Options& options)
    : event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), delay_(options.delay) {
  if (!options.cache_directory.empty()) {
    auto cache = UnwindCache::Open(options.cache_directory);
    if (cache.ok()) {
      cache_.emplace(std::move(cache).value());
    } else {
      cache_problem = cache.error().message;
    }
  }
  threads_.Start([this] { Work(true); });
  for (unsigned i = 0; i < options.threads; ++i) threads_.Start([this] { Work(false); });
}

UnwindTables::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex);
    stop_ = true;
  }
  work_.notify_all();
  threads_.Join();
  if (cache_ && cache_->grew()) cache_->Sweep();
}

UnwindTables::Id UnwindTables::Impl::Request(File file) {
  const std::lock_guard lock(mutex);
  const std::string key = KeyOf(file);
  if (entries.size() >= kMaxFiles && !ids_.contains(key)) return 0;
  const auto [place, is_new] = ids_.emplace(key, static_cast<Id>(entries.size() + 1));
  const Id id = place->second;
  if (is_new) {
    entries.emplace_back().file = std::move(file);
    ++pending_;
    Enqueue(id);
  } else {
    AddPaths(id, file);
  }
  return id;
}

void UnwindTables::Impl::AddPaths(Id id, const File& file) {
  Entry& known = entry(id);
  const bool retry = known.state == State::kFailed && known.unreachable;
  if (known.state != State::kPending && !retry) return;
  std::vector<std::string> added;
  for (const std::string& path : file.paths) {
    if (std::ranges::count(known.file.paths, path) == 0) added.push_back(path);
  }
  if (added.empty()) return;
  std::vector<std::string>& paths = known.file.paths;
  if (retry || paths.size() + added.size() > kMaxPaths) paths.clear();
  paths.insert(paths.end(), added.begin(), added.end());
  if (!retry) return;
  known.state = State::kPending;
  ++pending_;
  Enqueue(id);
}

void UnwindTables::Impl::Enqueue(Id id) {
  fresh_.push_back(id);
  work_.notify_all();
}

bool UnwindTables::Impl::HasWork(bool small_only) const {
  if (!fresh_.empty()) return true;
  return !builds_.empty() && (!small_only || builds_.front().file.bytes <= kSmallFileBytes);
}

void UnwindTables::Impl::Work(bool small_only) {
  std::unique_lock lock(mutex);
  while (true) {
    work_.wait(lock, [&] { return stop_ || HasWork(small_only); });
    if (stop_) return;
    if (!fresh_.empty()) {
      const Id id = fresh_.front();
      fresh_.pop_front();
      ++lookups_;
      lock.unlock();
      Identify(id);
      lock.lock();
      if (--lookups_ == 0) idle_.notify_all();
    } else {
      std::ranges::pop_heap(builds_, std::greater<>());
      Build job = std::move(builds_.back());
      builds_.pop_back();
      lock.unlock();
      BuildFile(std::move(job));
      lock.lock();
    }
  }
}

// Loads the table from the cache, by the build-id that the kernel reported or that the file has;
// otherwise queues the file for building.
void UnwindTables::Impl::Identify(Id id) {
  File wanted;
  {
    std::unique_lock lock(mutex);
    if (delay_.count() != 0) work_.wait_for(lock, delay_, [&] { return stop_; });
    wanted = entry(id).file;
  }
  if (!wanted.paths.empty() && wanted.paths.back() == kVdso) return BuildVdso(id);
  auto found = FindUnwindFile(wanted.paths, wanted.build_id, {wanted.device, wanted.inode});
  if (!found.ok()) {
    const std::lock_guard lock(mutex);
    if (entry(id).file.paths != wanted.paths) return Enqueue(id);  // paths were added meanwhile
    const std::string& name = wanted.paths.empty() ? std::string() : wanted.paths.back();
    const bool is_file = name.starts_with('/') && found.error().kind != ErrorKind::kInvalid;
    return Fail(id, is_file ? Trouble::kUnreachable : Trouble::kNotCode, found.error(), name);
  }
  if (Follows(id, *found)) return;
  found->FindDebugFrame();
  if (cache_) {
    if (auto table = cache_->Load(found->CacheKey())) {
      return Publish(id, std::make_shared<const UnwindTableBytes>(std::move(*table)),
                     std::move(found->segments), &Counts::cached);
    }
  }
  const std::lock_guard lock(mutex);
  if (open_files_ == kMaxOpenFiles) found->fd.reset();
  if (found->fd) ++open_files_;
  builds_.push_back({id, std::move(*found)});
  std::ranges::push_heap(builds_, std::greater<>());
  work_.notify_all();
}

// Records the identities by which this file may be requested. Returns true if it was requested
// under another id and is being built; `id` then waits for that.
bool UnwindTables::Impl::Follows(Id id, const UnwindFile& file) {
  TableBytes bytes;
  {
    const std::lock_guard lock(mutex);
    entry(id).device = file.info.st_dev;
    entry(id).inode = file.info.st_ino;
    for (const std::string& path : entry(id).file.paths) {
      if (!file.build_id.empty()) break;
      ids_.emplace(KeyOfIdentity({PackedDevice(file.info), file.info.st_ino}, path), id);
    }
    if (file.build_id.empty()) return false;
    const Id first = ids_.emplace(KeyOfBuildId(file.build_id), id).first->second;
    if (first == id) return false;
    if (entry(first).state == State::kPending) {
      entry(first).followers.push_back(id);
      return true;
    }
    bytes = entry(first).bytes;
  }
  if (bytes == nullptr) return false;
  Publish(id, std::move(bytes), file.segments, nullptr);
  return true;
}

void UnwindTables::Impl::BuildFile(Build job) {
  UnwindStats stats;
  const auto build = [&]() -> Result<TableBytes> {
    XPU_ASSIGN_OR_RETURN(const ElfFile file, job.file.Reopen());
    std::optional<ElfFile> debug;
    if (!job.file.frames_path.empty() && job.file.frames_path != job.file.path) {
      XPU_ASSIGN_OR_RETURN(debug, ElfFile::Open(job.file.frames_path));
    }
    return BuildChecked(file.image(), debug ? &debug->image() : nullptr, &stats);
  };
  auto table = build();
  {
    const std::lock_guard lock(mutex);
    if (job.file.fd) --open_files_;
    job.file.fd.reset();
    if (!table.ok()) return Fail(job.id, TroubleOf(table.error()), table.error(), job.file.path);
    if (!stats.problem.empty()) ReportFailure(entry(job.id), job.file.path, stats.problem);
  }
  const TableBytes bytes = *table;
  Publish(job.id, bytes, std::move(job.file.segments), &Counts::built);
  // A table with a problem is not stored, so that every recording reports the problem.
  if (cache_ && stats.problem.empty()) cache_->Store(job.file.CacheKey(), bytes->bytes());
}

void UnwindTables::Impl::BuildVdso(Id id) {
  std::vector<ElfSegment> segments;
  const auto build = [&]() -> Result<TableBytes> {
    XPU_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(VdsoImage(), kVdso));
    segments = image.segments();
    return BuildChecked(image);
  };
  auto table = build();
  if (table.ok()) return Publish(id, *table, std::move(segments), &Counts::built);
  const std::lock_guard lock(mutex);
  Fail(id, TroubleOf(table.error()), table.error(), kVdso);
}

void UnwindTables::Impl::Publish(Id id, TableBytes bytes, std::vector<ElfSegment> segments,
                                 uint64_t Counts::*from) {
  const std::lock_guard lock(mutex);
  if (from != nullptr) table_bytes_ += bytes->bytes().size();
  if (table_bytes_ > kMaxTableBytes) {
    const Error full{ErrorKind::kSystem, "the unwind tables of other files use all the memory", {}};
    return Fail(id, Trouble::kBroken, full, entry(id).file.paths.back());
  }
  entry(id).bytes = std::move(bytes);
  entry(id).segments = std::move(segments);
  if (from != nullptr) ++(counts.*from);
  Finish(id, State::kReady);
}

void UnwindTables::Impl::Fail(Id id, Trouble trouble, const Error& error, const std::string& path) {
  Entry& failed = entry(id);
  failed.unreachable = trouble == Trouble::kUnreachable;
  const bool may_be_generated = failed.file.build_id.empty() && MayBeGeneratedCode(path);
  if (trouble != Trouble::kNotCode && !may_be_generated) {
    ReportFailure(failed, path, ReasonOf(error, path));
  }
  Finish(id, State::kFailed);
}

void UnwindTables::Impl::Finish(Id id, State state) {
  entry(id).state = state;
  --pending_;
  for (const Id follower : std::exchange(entry(id).followers, {})) Enqueue(follower);
  if (finished.empty()) {
    const uint64_t one = 1;
    // Cannot fail, because the counter is 0.
    [[maybe_unused]] const ssize_t n = ::write(event.get(), &one, sizeof(one));
  }
  finished.push_back(id);
  if (pending_ == 0) idle_.notify_all();
}

std::vector<UnwindTables::Id> UnwindTables::Impl::TakeFinished() {
  const std::lock_guard lock(mutex);
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(event.get(), &count, sizeof(count));
  return std::exchange(finished, {});
}

bool UnwindTables::Impl::WaitUntil(uint64_t deadline_ns) {
  std::unique_lock lock(mutex);
  return idle_.wait_until(lock, At(deadline_ns), [&] { return pending_ == 0; });
}

void UnwindTables::Impl::WaitForLookups(uint64_t deadline_ns) {
  std::unique_lock lock(mutex);
  idle_.wait_until(lock, At(deadline_ns), [&] { return lookups_ == 0 && fresh_.empty(); });
}

UnwindTables::UnwindTables(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
UnwindTables::UnwindTables(UnwindTables&&) noexcept = default;
UnwindTables::~UnwindTables() = default;

UnwindTables::Id UnwindTables::Request(File file) { return impl_->Request(std::move(file)); }

UnwindTables::State UnwindTables::state(Id id) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->entry(id).state;
}

UnwindTable UnwindTables::table(Id id) const {
  const std::lock_guard lock(impl_->mutex);
  const Impl::Entry& entry = impl_->entry(id);
  XPU_CHECK(entry.bytes != nullptr);
  return entry.bytes->view();
}

std::optional<UnwindTables::CodeFile> UnwindTables::CodeFileOf(Id id) const {
  const std::lock_guard lock(impl_->mutex);
  const Impl::Entry& entry = impl_->entry(id);
  if (entry.inode == 0) return std::nullopt;
  const auto delta = LinkDeltaOfCode(entry.segments);
  return delta ? std::optional(CodeFile{entry.device, entry.inode, *delta}) : std::nullopt;
}

std::optional<uint64_t> UnwindTables::LinkAddressOfMapping(Id id, uint64_t file_offset,
                                                           uint64_t size_bytes) const {
  const std::lock_guard lock(impl_->mutex);
  return LinkAddressOfCodeMapping(impl_->entry(id).segments, file_offset, size_bytes);
}

void UnwindTables::Refuse(Id id, std::string reason) {
  const std::lock_guard lock(impl_->mutex);
  impl_->ReportFailure(impl_->entry(id), impl_->entry(id).file.paths.back(), std::move(reason));
}

std::vector<UnwindTables::Id> UnwindTables::TakeFinished() { return impl_->TakeFinished(); }

int UnwindTables::fd() const { return impl_->event.get(); }

bool UnwindTables::WaitUntil(uint64_t deadline_ns) { return impl_->WaitUntil(deadline_ns); }

void UnwindTables::WaitForLookups(uint64_t deadline_ns) { impl_->WaitForLookups(deadline_ns); }

std::vector<UnwindTables::Failure> UnwindTables::TakeFailures() {
  const std::lock_guard lock(impl_->mutex);
  return std::exchange(impl_->failures, {});
}

UnwindTables::Counts UnwindTables::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}

const std::string& UnwindTables::cache_problem() const { return impl_->cache_problem; }

}  // namespace xpu
