-- GPU time by the host and command of the recording.
WITH work AS (
  SELECT regexp_extract(filename, '([^/]*)/[^/]*$', 1) AS capture, sum(duration_ns) AS gpu_ns
  FROM read_parquet('tables/*/work.parquet', filename = true)
  WHERE kind <> 'sync'
  GROUP BY capture),
info AS (
  SELECT regexp_extract(filename, '([^/]*)/[^/]*$', 1) AS capture, host_name, command_line
  FROM read_parquet('tables/*/recording_info.parquet', filename = true))
SELECT host_name, command_line, count(*) AS captures, sum(gpu_ns) AS gpu_ns
FROM info JOIN work USING (capture)
GROUP BY host_name, command_line
ORDER BY gpu_ns DESC, host_name, command_line;
