#include "report/trace/graph_nodes.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

using Change = GraphNodeChange;

constexpr uint64_t kAlways = ~uint64_t{0};
constexpr uint32_t kKernel = 0;
constexpr uint32_t kCopy = 1;
constexpr uint32_t kSet = 2;
constexpr uint32_t kHost = 3;

uint64_t Id(uint64_t graph, uint64_t index) { return graph << 32 | index; }

class GraphNodesTest : public testing::Test {
 protected:
  void Created(uint64_t time_ns, uint64_t node, uint32_t correlation_id, uint32_t type = kKernel) {
    Add(Change::kCreated, time_ns, node, 0).correlation_id = correlation_id;
    changes_.back().node_type = type;
  }
  GraphNode& Add(Change change, uint64_t time_ns, uint64_t node, uint64_t original) {
    return changes_.emplace_back(GraphNode{.instance = {1},
                                           .time_ns = time_ns,
                                           .change = change,
                                           .node_id = node,
                                           .original_node_id = original,
                                           .graph_id = static_cast<uint32_t>(node >> 32)});
  }
  // The correlation id of the creation; -1: not known, -2: nothing is known of the graph.
  int Origin(uint64_t node, uint64_t time_ns = kAlways, uint64_t instance = 1) const {
    const GraphNodes nodes(changes_);
    const GraphNodes::Origin origin = nodes.OriginOf({instance}, node, time_ns);
    if (origin.created != nullptr) return static_cast<int>(origin.created->correlation_id);
    return origin.graph_is_known ? -1 : -2;
  }
  std::vector<GraphNode> changes_;
};

TEST_F(GraphNodesTest, FollowsClonesToTheCreation) {
  Created(10, Id(1, 0), 100);
  Created(11, Id(1, 1), 101);
  Add(Change::kCloned, 20, Id(2, 0), Id(1, 0));  // cudaGraphClone
  Add(Change::kCloned, 20, Id(2, 1), Id(1, 1));
  Created(30, Id(3, 1), 0, 0);  // CUPTI reports the creation of the clone too
  Add(Change::kCloned, 30, Id(3, 1), Id(2, 1));
  EXPECT_EQ(Origin(Id(3, 1)), 101);
  EXPECT_EQ(Origin(Id(2, 0)), 100);
  EXPECT_EQ(Origin(Id(1, 0)), 100);
  EXPECT_EQ(Origin(Id(3, 1), 5), 101);  // earlier than it was there: the clocks are off
}

TEST_F(GraphNodesTest, AnUpdateWithAnOriginalWinsFromItsTime) {
  Created(10, Id(1, 0), 100);
  Add(Change::kCloned, 20, Id(2, 0), Id(1, 0));
  Created(30, Id(5, 0), 105);
  Add(Change::kUpdated, 40, Id(2, 0), Id(5, 0));
  Add(Change::kUpdated, 50, Id(2, 0), 0);  // other parameters: the origin stays
  Created(60, Id(6, 0), 106);
  Add(Change::kUpdated, 70, Id(2, 0), Id(6, 0));
  EXPECT_EQ(Origin(Id(2, 0), 39), 100);
  EXPECT_EQ(Origin(Id(2, 0), 40), 105);
  EXPECT_EQ(Origin(Id(2, 0), 69), 105);
  EXPECT_EQ(Origin(Id(2, 0), 70), 106);
}

// A clone is what its original was then.
TEST_F(GraphNodesTest, AnUpdateOfTheOriginalAfterTheCloneIsNotTheClones) {
  Created(10, Id(1, 0), 100);
  Created(10, Id(9, 0), 109);
  Add(Change::kCloned, 20, Id(2, 0), Id(1, 0));
  Add(Change::kCloned, 30, Id(3, 0), Id(2, 0));
  Add(Change::kUpdated, 40, Id(2, 0), Id(9, 0));
  EXPECT_EQ(Origin(Id(3, 0)), 100);
  EXPECT_EQ(Origin(Id(2, 0)), 109);
}

// cudaGraphExecUpdate: each node does what the node of its index in another graph does.
TEST_F(GraphNodesTest, AnUpdateOfTheWholeGraph) {
  for (uint64_t i = 0; i < 2; ++i) {
    Created(10, Id(1, i), static_cast<uint32_t>(100 + i));
    Add(Change::kCloned, 20, Id(2, i), Id(1, i));
    Created(30, Id(5, i), static_cast<uint32_t>(105 + i));
  }
  Add(Change::kGraphUpdated, 40, 0, Id(5, 0)).graph_id = 2;
  EXPECT_EQ(Origin(Id(2, 1), 39), 101);
  EXPECT_EQ(Origin(Id(2, 0), 40), 105);
  EXPECT_EQ(Origin(Id(2, 1), 40), 106);
  EXPECT_EQ(Origin(Id(1, 1), 40), 101);
  Add(Change::kGraphUpdated, 50, 0, Id(8, 0)).graph_id = 2;  // nothing is known of graph 8
  EXPECT_EQ(Origin(Id(2, 1), 60), -2);
  EXPECT_EQ(GraphNodes(changes_).SizeOf({1}, 2).nodes, 2u);
  Add(Change::kGraphUpdated, 70, 0, Id(5, 0)).graph_id = 3;  // older than the recording
  EXPECT_EQ(Origin(Id(3, 1), 69), -1);
  EXPECT_EQ(Origin(Id(3, 1), 70), 106);
}

TEST_F(GraphNodesTest, AnUpdateToOrOfAnUnknownGraph) {
  Created(10, Id(1, 0), 100);
  Add(Change::kCloned, 20, Id(2, 0), Id(1, 0));
  Add(Change::kGraphUpdated, 30, 0, Id(1, 0)).graph_id = 0;
  EXPECT_EQ(Origin(Id(2, 0)), 100);
  EXPECT_EQ(GraphNodes(changes_).updates_of_unknown(), 1u);
  Add(Change::kGraphUpdated, 40, 0, 0).graph_id = 2;
  EXPECT_EQ(Origin(Id(2, 0), 39), 100);
  EXPECT_EQ(Origin(Id(2, 0), 40), -1);
  Add(Change::kGraphUpdated, 50, 0, Id(1, 0)).graph_id = 2;
  EXPECT_EQ(Origin(Id(2, 0), 50), 100);
  EXPECT_EQ(GraphNodes(changes_).updates_of_unknown(), 1u);
}

TEST_F(GraphNodesTest, NewParametersDoNotUndoAnUpdateOfTheGraph) {
  Created(10, Id(1, 0), 100);
  Add(Change::kCloned, 20, Id(2, 0), Id(1, 0));
  Created(30, Id(5, 0), 105);
  Add(Change::kGraphUpdated, 40, 0, Id(5, 0)).graph_id = 2;
  Add(Change::kUpdated, 50, Id(2, 0), Id(1, 0));
  EXPECT_EQ(Origin(Id(2, 0), 39), 100);
  EXPECT_EQ(Origin(Id(2, 0)), 105);
}

TEST_F(GraphNodesTest, ANodeThatHoldsAChildGraphIsNotCounted) {
  constexpr uint32_t kChildGraph = 4;
  Created(10, Id(1, 0), 100);
  Created(11, Id(1, 1), 101, kChildGraph);
  Created(5, Id(9, 0), 90);
  Add(Change::kCloned, 20, Id(2, 0), Id(1, 0));
  Add(Change::kCloned, 20, Id(3, 0), Id(9, 0));
  Add(Change::kCloned, 20, Id(2, 1), Id(1, 1));
  Add(Change::kCloned, 21, Id(2, 2), Id(3, 0));  // moved
  const GraphNodes nodes(changes_);
  EXPECT_EQ(nodes.SizeOf({1}, 2).nodes, 2u);
  EXPECT_EQ(nodes.SizeOf({1}, 2).kernels, 2u);
  EXPECT_EQ(Origin(Id(2, 2)), 90);
}

TEST_F(GraphNodesTest, WhatIsNotKnown) {
  Created(10, Id(1, 0), 100);
  Add(Change::kCloned, 20, Id(2, 0), Id(1, 7));  // lost
  Add(Change::kCloned, 20, Id(2, 1), Id(8, 0));  // of a graph before the recording
  EXPECT_EQ(Origin(Id(2, 0)), -1);
  EXPECT_EQ(Origin(Id(2, 1)), -2);
  EXPECT_EQ(Origin(Id(2, 5)), -1);
  EXPECT_EQ(Origin(Id(4, 0)), -2);
  EXPECT_EQ(Origin(Id(1, 0), kAlways, 2), -2);  // of another process
}

TEST_F(GraphNodesTest, CirclesEnd) {
  Add(Change::kCloned, 20, Id(1, 0), Id(2, 0));
  Add(Change::kCloned, 20, Id(2, 0), Id(1, 0));
  Add(Change::kUpdated, 20, Id(3, 0), Id(3, 0));
  EXPECT_EQ(Origin(Id(1, 0)), -1);
  EXPECT_EQ(Origin(Id(3, 0)), -1);
}

TEST_F(GraphNodesTest, SizesOfExecutableGraphs) {
  Created(10, Id(1, 0), 100);
  Created(10, Id(1, 1), 100, kCopy);
  Created(10, Id(1, 2), 100);
  Created(10, Id(1, 3), 100, kSet);
  Created(10, Id(1, 4), 100, kHost);
  for (uint64_t i = 0; i < 5; ++i) Add(Change::kCloned, 20, Id(2, i), Id(1, i));
  changes_.back().graph_id = 0;  // then the node says it
  Created(21, Id(2, 9), 0);      // the driver's own
  Add(Change::kUpdated, 30, Id(2, 0), Id(1, 2));
  Add(Change::kCloned, 40, Id(3, 0), Id(7, 0));  // not known what it is
  const GraphNodes nodes(changes_);
  EXPECT_EQ(nodes.SizeOf({1}, 2).nodes, 5u);
  EXPECT_EQ(nodes.SizeOf({1}, 2).kernels, 2u);
  EXPECT_EQ(nodes.SizeOf({1}, 2).copies_and_sets, 2u);
  EXPECT_EQ(nodes.SizeOf({1}, 3).nodes, 1u);
  EXPECT_EQ(nodes.SizeOf({1}, 3).kernels, 0u);
  EXPECT_EQ(nodes.SizeOf({1}, 1).nodes, 0u);
  EXPECT_EQ(nodes.SizeOf({2}, 2).nodes, 0u);
}

}  // namespace
}  // namespace xpu
