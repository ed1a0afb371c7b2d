"""The names that each design document introduces: its classes, functions, parameters, keys, tables, settings and texts.

Read off the code blocks and the words between backticks; words of Python, Go, SQL and of libraries are left out. A name that is
missing here would not be missed on its page: it is the list to begin with when a document changes.
"""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES: dict[str, tuple[str, ...]] = {
    "000": _words(
        """
        opdoc_qa search_yongce_docs load_tool_history ARCHIVE_THRESHOLD tool_name query_summary original_length timestamp
        summary_200_chars source_1 source_2 source_3 ToolResultArchive Base __tablename__ tool_result_archive uuid
        conversation_id thread_id tool_input result_summary result_full result_length sources created_at embedding
        ToolResultManager process_tool_result result load_tool_result prepare_context messages load_uuids
        restore_placeholders load_tool_history_schema AI 关键词触发 语义相似度 混合策略 历史工具结果管理 工具结果存档 工具: 查询: 时间:
        原始长度: 内容摘要: 主要来源: 如需查看完整内容 摘要生成 语义搜索历史 部分加载 跨会话复用 清理策略 前端展示
        chat_service lightrag_service configs opdoc
        """
    ),
    "001": (
        *_words(
            """
            MEMORY_CHECKPOINT TokenThresholdRatio SessionValue AIMessage Meta FlowCtx Checkpoint MsgCtx GlobalState UserSnap
            QueryMemory WriteTurn CreateShortMemory QueryMemoryContext FULL_HISTORY SUMMARY_N CheckpointShortMemory MetaInfo
            FlowContext flow_context MessageContext message_context global_state UserSnapshot UserProfile user_snapshot
            ConversationID conversation_id UserID user_id UpdatedAt updated_at CurrentAgentKey current_agent_key LastBotMessage
            last_bot_message TurnCount turn_count Summary summary WindowMessages Message window_messages Mode mode
            CheckpointMessageID checkpoint_message_id Role role Content content Shared shared SharedEntities Entities entities
            AgentSlots agent_slots CurrentIntent current_intent PendingAction pending_action Name name Allergies allergies
            ChronicDiseases history SurgeryHistory surgery_history Preferences preferences MemoryContext Session History
            FullHistory EstimatedTokens TokenRatio ShouldCheckpointSummary AgentApp MemoryQueryRequest EnterpriseID PatientID Query
            RecentTurns ModelContextWindow generateSummary llmResponse callLLM MemoryWriteRequest AgentResponse MemoryWriteResult
            AgentCode UserQuery triage_agent conversationID recentTurns AgentRequest ConversationId UserId GetShortMemory
            NewAgentApp handleUserMessage userMessage defaultMemoryTokenThresholdRatio defaultMemoryRecentTurns
            defaultModelContextWindow CachedCheckpoint cached_checkpoint QueryMessageByConversationIDASCWithLimit
            QueryMessageByConversationIDASCFromCheckpoint generateSummaryAsync retryCount MemoryModeFullHistory SetShortMemory
            memoryMutex message_id create_time create_by update_time update_by query answer ai_message GetRedisClient Del
            short_term_memory:session:%s 历史摘要: 历史对话: 用户问题: 当前模式: 轮次计数: AI回复: checkpoint创建频率 摘要长度分布
            token占用率分布 DB查询耗时 Redis读取耗时 异步摘要 同步摘要 30分钟 powerai
            """
        ),
        "QueryMemoryContext error: %v",
        "WriteTurn error: %v",
        "CheckpointShortMemory error: %v",
        "Failed to create checkpoint: %v",
    ),
    "002": _words(
        """
        conversation_store list_messages limit desc build_prompt summary_updated_at summary_message_count
        conversation_summaries id conversation_id summary covered_message_count created_at ConversationSummarizer llm
        min_messages should_summarize count_messages get_summary generate_summary all_messages to_summarize ChatPromptTemplate
        format_messages save_summary append_message role content ChatHandler _get_context _summarizer get_or_generate_summary
        _conversation_store recent_history _build_general_prompt system_message memory_context history question
        MessagesPlaceholder 长期记忆： 对话背景： vector_cosine_ops conversation_episodes_collection conversation_episodes
        user_message assistant_message embedding dim ConversationEpisodicMemory milvus_client embedding_model index_episode
        embed_query recall_relevant query top_k timestamp collection_name _get_hybrid_history current_query
        _episodic_memory seen_content unique_relevant StreamHandler KBHandler process_stream session_id agent_type
        RAGStreamExecutor kb_prefix RagManager run_plan_blocking generate_rag_answer _executor StateGraph ConversationState
        messages user_id conversation_summary episodic_memory use_retrieval retrieval_results debug START END route_node router
        recall_node memory_service recall_context retrieve_node rag_executor retrieve generate_node build_prompt_from_state
        callbacks get_langfuse_callback persist_node create_task add_node add_edge compile stream_chat ChatRequest message
        initial_state get_or_create_conversation_id 请将以下对话历史浓缩为简洁的摘要，突出关键信息和用户偏好。
        """
    ),
    "003": _words(
        """
        get_toc grid_code memory.py pydantic_agent claude_agent _update_memory smart_search read_page_range toc_cache
        _build_system_prompt ContentChunk content source relevance_score chunk_type metadata search_result page_content table
        AgentMemory reg_id toc TocTree known_chapters relevant_chunks current_query max_chunks min_relevance cache_toc
        get_cached_toc has_cached_toc add_chunk add_search_results add_page_content relevance get_memory_context
        get_toc_cache_hint clear_query_context reset system_prompt agent_run stream_text tool_name result_content _memory
        base_prompt _process_event reset_all memory_enabled Field description memory_max_chunks
        memory_min_relevance config.py 已缓存目录 以下规程目录已获取: 无需再次调用 已获取的相关信息 缓存目录: 添加搜索结果: 添加页面内容:
        """
    ),
    "004": _words(
        """
        _count_tokens text get_encoding cl100k_base before_model before_agent _extract_conversation_context messages max_turns
        context_parts turn_count msg_type extract_text tool_calls MemoryMiddleware state runtime conversation_context
        memory_data get_memory_data memory_content format_memory_for_injection max_tokens max_injection_tokens current_context
        memory_message SystemMessage memory_context updated_messages enabled max_context_turns similarity_weight
        confidence_weight tiktoken TF-IDF facts confidence config.yaml config.example.yaml prompt.py memory_middleware
        lead_agent MEMORY_IMPROVEMENTS MEMORY_IMPROVEMENTS_SUMMARY CLAUDE pyproject scikit-learn <memory> </memory>
        """
    ),
}
