// How a process sees itself: what a recorder may have changed of it.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/system/odd_program.h"
#include "tests/workloads/json_line.h"

namespace odd {
namespace {

// JsonLine knows no control characters.
std::string Plain(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::string plain(text);
  std::replace_if(
      plain.begin(), plain.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return plain;
}

// The lines of /proc/self/status that do not count what happened.
void AddStatus(workload::JsonLine* json) {
  constexpr std::string_view kNames[] = {"Umask",        "Tgid",         "Uid",
                                         "Gid",

                                         "Groups",       "SigQ",         "SigPnd",
                                         "ShdPnd",       "SigBlk",       "SigIgn",
                                         "SigCgt",       "CapInh",       "CapPrm",
                                         "CapEff",       "CapBnd",       "CapAmb",
                                         "NoNewPrivs",   "Seccomp",      "Seccomp_filters",
                                         "Cpus_allowed", "Mems_allowed", "Speculation_Store_Bypass",
                                         "THP_enabled",  "TracerPid",    "CoreDumping"};
  constexpr std::string_view kDiffer[] = {"Tgid", "SigQ"};
  FILE* file = std::fopen("/proc/self/status", "r");
  Check(file != nullptr, "/proc/self/status");
  char line[4096];
  json->BeginObject("status");
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    const std::string_view text(line, std::strcspn(line, "\n"));
    const size_t colon = std::min(text.find(':'), text.size() - 1);
    const std::string_view name = text.substr(0, colon);
    const bool known = std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
    const bool differs =
        std::find(std::begin(kDiffer), std::end(kDiffer), name) != std::end(kDiffer);
    if (known && !differs) json->Add(name, Plain(text.substr(colon + 1)));
  }
  json->EndObject();
  std::fclose(file);
}

void AddLimits(workload::JsonLine* json) {
  json->BeginArray("limits");
  for (int resource = 0; resource < RLIMIT_NLIMITS; ++resource) {
    struct rlimit limit {};
    Check(getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0, "getrlimit");
    json->Add("", std::to_string(limit.rlim_cur) + "/" + std::to_string(limit.rlim_max));
  }
  json->EndArray();
}

std::string LinkOf(const std::string& path) {
  char target[4096];
  const ssize_t n = readlink(path.c_str(), target, sizeof(target));
  return n < 0 ? "?" : std::string(target, static_cast<size_t>(n));
}

void AddDescriptors(workload::JsonLine* json) {
  DIR* directory = opendir("/proc/self/fd");
  Check(directory != nullptr, "/proc/self/fd");
  std::vector<std::string> found;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.' || std::atoi(entry->d_name) == dirfd(directory)) continue;
    const std::string name = entry->d_name;
    // Of what has no name the number differs from run to run.
    const std::string link = LinkOf("/proc/self/fd/" + name);
    found.push_back(name + " " + link.substr(0, link.find(":[")));
  }
  closedir(directory);
  std::sort(found.begin(), found.end());
  json->BeginArray("descriptors");
  for (const std::string& descriptor : found) json->Add("", descriptor);
  json->EndArray();
}

void AddSignals(workload::JsonLine* json) {
  json->BeginArray("handlers");
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    const char* what = action.sa_handler == SIG_DFL   ? "default"
                       : action.sa_handler == SIG_IGN ? "ignore"
                                                      : "own";
    json->Add("", std::string(what) + " " + std::to_string(action.sa_flags));
  }
  json->EndArray();
  stack_t stack{};
  Check(sigaltstack(nullptr, &stack) == 0, "sigaltstack");
  json->Add("alternate_stack", static_cast<uint64_t>(stack.ss_flags));
}

std::string FirstLine(const char* path) {
  FILE* file = std::fopen(path, "r");
  if (file == nullptr) return "?";
  char line[256] = "";
  if (std::fgets(line, sizeof(line), file) == nullptr) line[0] = '\0';
  std::fclose(file);
  return std::string(line, std::strcspn(line, "\n"));
}

void AddEnvironment(workload::JsonLine* json) {
  constexpr std::string_view kOurs[] = {
      "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "XPU_INJECT="};
  json->BeginArray("environment");
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool ours = std::any_of(std::begin(kOurs), std::end(kOurs),
                                  [&](std::string_view name) { return text.starts_with(name); });
    if (!ours) json->Add("", Plain(text));
  }
  json->EndArray();
}

}  // namespace

void View() {
  workload::JsonLine json;
  AddStatus(&json);
  AddLimits(&json);
  AddDescriptors(&json);
  AddSignals(&json);
  AddEnvironment(&json);
  for (const char* file : {"oom_score_adj", "coredump_filter", "timerslack_ns", "personality",
                           "cgroup", "sessionid", "loginuid", "attr/current"}) {
    json.Add(file, FirstLine((std::string("/proc/self/") + file).c_str()));
  }
  for (const char* name : {"mnt", "pid", "net", "user", "uts", "ipc", "cgroup", "time"}) {
    json.Add(name, LinkOf(std::string("/proc/self/ns/") + name));
  }
  json.Add("folder", LinkOf("/proc/self/cwd"));
  json.Add("root", LinkOf("/proc/self/root"));
  json.Add("program", LinkOf("/proc/self/exe"));
  json.Add("group", std::to_string(getpgrp()));
  json.Add("session", std::to_string(getsid(0)));
  json.Add("nice", std::to_string(getpriority(PRIO_PROCESS, 0)));
  json.Add("scheduler", std::to_string(sched_getscheduler(0)));
  json.Add("io_priority", std::to_string(syscall(SYS_ioprio_get, 1, 0)));
  json.Add("dumpable", std::to_string(prctl(PR_GET_DUMPABLE)));
  json.Add("subreaper_of_us", std::to_string(prctl(PR_GET_PDEATHSIG, 0)));
  json.Add("secure", std::to_string(prctl(PR_GET_SECUREBITS)));
  workload::PrintLine(json.Finish());
}

}  // namespace odd
