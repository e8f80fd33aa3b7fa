-- GPU time of each recording's label `commit` (xpu-record --label commit=$(git rev-parse HEAD)) on
-- each host: how many captures, their mean, and its standard error where there are several.
-- Captures without the label are in the rows without a commit.
WITH work AS (
  SELECT regexp_extract(filename, '([^/]*)/[^/]*$', 1) AS capture, sum(duration_ns) AS gpu_ns
  FROM read_parquet('tables/*/work.parquet', filename = true)
  WHERE kind <> 'sync'
  GROUP BY capture),
info AS (
  SELECT regexp_extract(filename, '([^/]*)/[^/]*$', 1) AS capture, host_name
  FROM read_parquet('tables/*/recording_info.parquet', filename = true)),
label AS (
  SELECT regexp_extract(filename, '([^/]*)/[^/]*$', 1) AS capture, value AS commit_id
  FROM read_parquet('tables/*/label.parquet', filename = true)
  WHERE key = 'commit')
SELECT commit_id, host_name, count(*) AS captures, avg(gpu_ns) AS mean_gpu_ns,
       stddev_samp(gpu_ns) / sqrt(count(*)) AS error_ns
FROM info JOIN work USING (capture) LEFT JOIN label USING (capture)
GROUP BY commit_id, host_name
ORDER BY commit_id NULLS LAST, host_name;
