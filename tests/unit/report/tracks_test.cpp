#include "report/trace/tracks.h"

#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

using Kind = ProcessEventKind;

class TracksTest : public testing::Test {
 protected:
  const Tracks& Make() {
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    return analysis_->tracks;
  }
  void PutIntoContainer(uint64_t time_ns, uint32_t pid, std::string_view id) {
    ContainerInfo& info = builder_.events.container_infos.emplace_back();
    info.time_ns = time_ns;
    info.pid = pid;
    info.id = builder_.Text(id);
  }
  std::string_view NameAt(uint32_t pid, uint32_t tid, uint64_t time_ns) const {
    return analysis_->tracks.NameOf(analysis_->tracks.OwnerAt(pid, tid, time_ns));
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
};

TEST_F(TracksTest, ThreadThatIsRenamedHasTwoTracks) {
  builder_.Process(Kind::kExisting, 10, 5, 5, "main");
  builder_.Process(Kind::kName, 20, 5, 6, "worker");
  builder_.Process(Kind::kName, 30, 5, 6, "writer");
  const Tracks& tracks = Make();
  const TrackId worker = tracks.At(5, 6, 20);
  const TrackId writer = tracks.At(5, 6, 35);
  EXPECT_NE(worker, writer);
  EXPECT_NE(worker, tracks.At(5, 5, 25));
  EXPECT_EQ(tracks.At(5, 6, 29), worker);  // after a later time was asked for
  EXPECT_EQ(tracks.At(5, 6, 15), worker);  // its first name holds before it too
  EXPECT_EQ(tracks[writer].tid, 6u);
  EXPECT_EQ(tracks[writer].process, tracks[worker].process);
  EXPECT_EQ(NameAt(5, 6, 25), "worker");
  EXPECT_EQ(NameAt(5, 6, 30), "writer");
  EXPECT_EQ(NameAt(5, 7, 30), "main");  // no record names the thread
}

TEST_F(TracksTest, PidThatIsUsedAgainHasAnotherTrack) {
  builder_.Process(Kind::kExisting, 10, 5, 5, "app");
  builder_.Process(Kind::kExit, 20, 5, 5);
  builder_.Process(Kind::kFork, 30, 5, 5, "app", 1, 1);
  const Tracks& tracks = Make();
  EXPECT_NE(tracks[tracks.At(5, 5, 15)].process, tracks[tracks.At(5, 5, 35)].process);
  const Owner unknown = tracks.OwnerAt(77, 78, 15);
  EXPECT_FALSE(unknown.process);
  EXPECT_EQ(tracks[unknown.track].pid, 77u);
  EXPECT_EQ(tracks.NameOf(unknown), "");
}

TEST_F(TracksTest, ThreadThatEntersAContainerHasTwoTracks) {
  builder_.Process(Kind::kExisting, 10, 5, 5, "app");
  PutIntoContainer(10, 5, "");
  PutIntoContainer(50, 5, "0123456789abcdef");
  const Tracks& tracks = Make();
  const Track& outside = tracks[tracks.At(5, 5, 49)];
  EXPECT_EQ(outside.container, nullptr);
  const Track& inside = tracks[tracks.At(5, 5, 50)];
  ASSERT_NE(inside.container, nullptr);
  EXPECT_EQ(analysis_->containers.NameOf(*inside.container), "0123456789ab");
  EXPECT_EQ(tracks.At(5, 5, 10), tracks.At(5, 5, 49));
}

TEST_F(TracksTest, EventsOfOneThreadShareItsTrack) {
  builder_.Process(Kind::kExisting, 10, 5, 5, "app");
  for (const uint64_t time_ns : {20, 30, 40}) builder_.Sample(time_ns, 5, 5, {});
  builder_.Sample(50, 5, 6, {});
  Make();
  const SampleList& samples = analysis_->model.events.cpu_samples;
  EXPECT_EQ(samples[0].track, samples[2].track);
  EXPECT_NE(samples[0].track, samples[3].track);
  EXPECT_EQ(samples[3].owner().track, samples[3].track);
  EXPECT_EQ(samples[3].process, samples[0].process);
}

}  // namespace
}  // namespace xpu
