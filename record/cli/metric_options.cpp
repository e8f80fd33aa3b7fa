#include "record/cli/metric_options.h"

namespace xpu {

void AddMetricOptions(CLI::App& app, RecordOptions& options) {
  GpuMetricsOptions& metrics = options.gpu_metrics;
  auto* wanted = app.add_flag("--gpu-metrics", metrics.counters);
  // The GPU gives either: CUPTI 13.0 finds the counters in use too late, and breaks in the program.
  wanted->excludes(app.get_option("--gpu-samples"));
  app.add_option("--gpu-metric-set", metrics.set_text)->type_name("LIST")->needs(wanted);
  app.add_option("--gpu-metric-interval", metrics.interval_text)->type_name("TIME")->needs(wanted);
  app.add_flag("--list-gpu-metrics", options.list_gpu_metrics);
  app.add_flag("--no-gpu-clocks", metrics.no_clocks);
}

}  // namespace xpu
