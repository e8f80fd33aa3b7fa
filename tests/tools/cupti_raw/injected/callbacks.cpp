#include "callbacks.h"

#include <cstring>

#include "state.h"

namespace xpu::cupti_raw {
namespace {

// symbolName is documented for launches only; elsewhere it may be anything.
bool HasSymbolName(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    switch (cbid) {
      case CUPTI_DRIVER_TRACE_CBID_cuLaunch:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
        return true;
      default:
        return false;
    }
  }
  switch (cbid) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060:
    case CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000:
    case CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000:
      return true;
    default:
      return false;
  }
}

void WriteCallbackNameOnce(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const char* name) {
  const std::pair<uint32_t, uint32_t> key(domain, cbid);
  const std::lock_guard lock(g_state->names_mutex);
  if (!g_state->named_callbacks.insert(key).second) return;
  Payload payload;
  payload.Add(CallbackNamePayload{key.first, key.second});
  payload.AddString(name == nullptr ? "" : name);
  g_state->writer.Write(EntryType::kCallbackName, std::move(payload), Now(CLOCK_MONOTONIC), 100);
}

void WriteSymbolNameOnce(const char* symbol) {
  const std::lock_guard lock(g_state->names_mutex);
  std::string& known = g_state->symbols[Number(symbol)];
  if (known == symbol) return;
  known = symbol;
  Payload payload;
  payload.Add(SymbolNamePayload{Number(symbol)});
  payload.AddString(known);
  g_state->writer.Write(EntryType::kSymbolName, std::move(payload), Now(CLOCK_MONOTONIC), 100);
}

void WriteCallback(EntryType type, Payload payload, uint64_t monotonic_ns) {
  ++g_state->callbacks;
  if (!g_state->writer.Write(type, std::move(payload), monotonic_ns, 60)) {
    ++g_state->callbacks_left_out;
  }
}

void NoteContext() {
  if (g_state->context_seen.exchange(true)) return;
  const std::lock_guard lock(g_state->thread_mutex);
  g_state->context_exists = true;
  g_state->wake.notify_all();
}

void OnApi(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const CUpti_CallbackData* data,
           uint64_t monotonic_ns) {
  WriteCallbackNameOnce(domain, cbid, data->functionName);
  ApiCallbackPayload api{};
  api.domain = static_cast<uint16_t>(domain);
  api.site = static_cast<uint16_t>(data->callbackSite);
  api.cbid = cbid;
  api.correlation_id = data->correlationId;
  api.context_uid = data->contextUid;
  api.context_pointer = Number(data->context);
  if (HasSymbolName(domain, cbid) && data->symbolName != nullptr) {
    api.symbol_pointer = Number(data->symbolName);
    WriteSymbolNameOnce(data->symbolName);
  }
  if (data->callbackSite == CUPTI_API_EXIT && data->functionReturnValue != nullptr) {
    std::memcpy(&api.return_value, data->functionReturnValue, sizeof(api.return_value));
  }
  Payload payload;
  payload.Add(api);
  WriteCallback(EntryType::kApiCallback, std::move(payload), monotonic_ns);
}

void AddGraph(const CUpti_GraphData& graph, ResourceCallbackPayload* out) {
  const Cupti& cupti = g_state->cupti;
  out->node_type = static_cast<uint32_t>(graph.nodeType);
  out->graph_pointer = Number(graph.graph);
  out->original_graph_pointer = Number(graph.originalGraph);
  out->node_pointer = Number(graph.node);
  out->original_node_pointer = Number(graph.originalNode);
  out->dependency_pointer = Number(graph.dependency);
  out->graph_exec_pointer = Number(graph.graphExec);
  if (graph.node != nullptr && cupti.cuptiGetGraphNodeId != nullptr) {
    cupti.cuptiGetGraphNodeId(graph.node, &out->node_id);
  }
  if (graph.originalNode != nullptr && cupti.cuptiGetGraphNodeId != nullptr) {
    cupti.cuptiGetGraphNodeId(graph.originalNode, &out->original_node_id);
  }
  if (graph.graph != nullptr && cupti.cuptiGetGraphId != nullptr) {
    cupti.cuptiGetGraphId(graph.graph, &out->graph_id);
  }
  if (graph.originalGraph != nullptr && cupti.cuptiGetGraphId != nullptr) {
    cupti.cuptiGetGraphId(graph.originalGraph, &out->original_graph_id);
  }
  if (graph.graphExec != nullptr && cupti.cuptiGetGraphExecId != nullptr) {
    cupti.cuptiGetGraphExecId(graph.graphExec, &out->graph_exec_id);
  }
}

// Which fields of CUpti_GraphData are set depends on the cbid and the rest is not cleared, so only
// the documented ones may be followed.
CUpti_GraphData ValidGraphFields(CUpti_CallbackId cbid, const CUpti_GraphData& data) {
  CUpti_GraphData valid{};
  valid.graph = data.graph;
  switch (cbid) {
    case CUPTI_CBID_RESOURCE_GRAPH_CLONED:
      valid.originalGraph = data.originalGraph;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING:
      valid.nodeType = data.nodeType;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
    case CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING:
      valid.node = data.node;
      valid.nodeType = data.nodeType;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      valid.originalGraph = data.originalGraph;
      valid.node = data.node;
      valid.originalNode = data.originalNode;
      valid.nodeType = data.nodeType;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED:
    case CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_DESTROY_STARTING:
      valid.node = data.node;
      valid.dependency = data.dependency;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED:
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING:
      valid.graphExec = data.graphExec;
      break;
    default:
      break;
  }
  return valid;
}

void OnResource(CUpti_CallbackId cbid, const CUpti_ResourceData* data, uint64_t monotonic_ns) {
  const char* name = nullptr;
  if (g_state->cupti.cuptiGetCallbackName != nullptr) {
    g_state->cupti.cuptiGetCallbackName(CUPTI_CB_DOMAIN_RESOURCE, cbid, &name);
  }
  WriteCallbackNameOnce(CUPTI_CB_DOMAIN_RESOURCE, cbid, name);
  ResourceCallbackPayload out{};
  out.cbid = cbid;
  if (data != nullptr) {
    out.context_pointer = Number(data->context);
    const bool has_stream = cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED ||
                            cbid == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
    if (has_stream) out.stream_pointer = Number(data->resourceHandle.stream);
    const bool is_module = cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED ||
                           cbid == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING ||
                           cbid == CUPTI_CBID_RESOURCE_MODULE_PROFILED;
    if (is_module && data->resourceDescriptor != nullptr) {
      const auto* module = static_cast<const CUpti_ModuleResourceData*>(data->resourceDescriptor);
      out.module_id = module->moduleId;
      out.cubin_size = module->cubinSize;
    }
    const bool is_graph =
        cbid >= CUPTI_CBID_RESOURCE_GRAPH_CREATED && cbid <= CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
    if (is_graph && data->resourceDescriptor != nullptr) {
      const auto* graph = static_cast<const CUpti_GraphData*>(data->resourceDescriptor);
      AddGraph(ValidGraphFields(cbid, *graph), &out);
    }
  }
  Payload payload;
  payload.Add(out);
  WriteCallback(EntryType::kResourceCallback, std::move(payload), monotonic_ns);
  if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) NoteContext();
}

}  // namespace

void CUPTIAPI OnCallback(void* /*user_data*/, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                         const void* data) {
  if (t_own_call || g_state->silent.load()) return;
  const uint64_t monotonic_ns = Now(CLOCK_MONOTONIC);
  WriteThreadOnce();
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      OnApi(domain, cbid, static_cast<const CUpti_CallbackData*>(data), monotonic_ns);
      break;
    case CUPTI_CB_DOMAIN_RESOURCE:
      OnResource(cbid, static_cast<const CUpti_ResourceData*>(data), monotonic_ns);
      break;
    default:
      ++g_state->callbacks_left_out;
      break;
  }
}

}  // namespace xpu::cupti_raw
