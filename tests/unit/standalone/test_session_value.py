"""Document 001's types: keys, names and defaults are part of the contract."""

import json
from dataclasses import fields

import pytest

from pagefile import InvalidArgumentError
from pagefile.standalone import (
    FULL_HISTORY,
    SESSION_KEY,
    SUMMARY_N,
    AgentRequest,
    FlowContext,
    GlobalState,
    MemoryContext,
    MemoryModeFullHistory,
    MemoryModeSummaryN,
    MemoryQueryRequest,
    MemoryWriteRequest,
    MemoryWriteResult,
    Message,
    MessageContext,
    MetaInfo,
    PendingAction,
    SessionValue,
    SharedEntities,
    UserProfile,
    defaultMemoryRecentTurns,
    defaultMemoryTokenThresholdRatio,
    defaultModelContextWindow,
)

ENTITIES = {
    "symptom_summary": "头晕三天",
    "disease": "高血压",
    "target_dept": "心内科",
    "target_doctor": "李医生",
    "intent_tag": "挂号",
}
GOLDEN = {
    "meta": {"conversation_id": "conv-123", "user_id": "user-456", "updated_at": 1770595200},
    "flow_context": {
        "current_agent_key": "triage_agent",
        "last_bot_message": "请先测量血压。",
        "turn_count": 3,
    },
    "message_context": {
        "summary": "用户头晕。",
        "window_messages": [
            {"role": "user", "content": "我头晕"},
            {"role": "assistant", "content": "请先测量血压。"},
        ],
        "mode": "SUMMARY_N",
        "checkpoint_message_id": "cp-1",
        "cached_checkpoint": "历史摘要: 用户头晕。",
    },
    "global_state": {
        "shared": ENTITIES,
        "entities": ENTITIES,
        "agent_slots": {"triage": {"深": [1, None, {"x": 0.5}]}},
        "current_intent": "consult",
        "pending_action": {"tool_name": "book", "tool_params": {"dept": "心内科"}, "reason": "等待确认"},
    },
    "user_snapshot": {
        "user_id": "user-456",
        "name": "王芳",
        "allergies": ["青霉素"],
        "history": ["高血压"],
        "surgery_history": ["阑尾切除"],
        "preferences": ["上午就诊"],
    },
}


def golden() -> SessionValue:
    return SessionValue(
        Meta=MetaInfo(ConversationID="conv-123", UserID="user-456", UpdatedAt=1770595200),
        FlowContext=FlowContext("triage_agent", "请先测量血压。", TurnCount=3),
        MessageContext=MessageContext(
            Summary="用户头晕。",
            WindowMessages=[Message("user", "我头晕"), Message(Role="assistant", Content="请先测量血压。")],
            Mode=SUMMARY_N,
            CheckpointMessageID="cp-1",
            CachedCheckpoint="历史摘要: 用户头晕。",
        ),
        GlobalState=GlobalState(
            Shared=SharedEntities(**ENTITIES),
            AgentSlots={"triage": {"深": [1, None, {"x": 0.5}]}},
            CurrentIntent="consult",
            PendingAction=PendingAction("book", {"dept": "心内科"}, "等待确认"),
        ),
        UserSnapshot=UserProfile(
            UserID="user-456",
            Name="王芳",
            Allergies=["青霉素"],
            ChronicDiseases=["高血压"],
            SurgeryHistory=["阑尾切除"],
            Preferences=["上午就诊"],
        ),
    )


def test_the_session_has_the_documents_json():
    """S1-14, S1-16 … S1-19, S1-21, S1-22, S1-23, S1-54: every key, in the document's order, byte for byte."""
    assert json.dumps(GOLDEN, ensure_ascii=False) == json.dumps(golden().to_json(), ensure_ascii=False)


def test_the_session_comes_back_from_its_json():
    """S1-16, S1-21: a round trip changes nothing, whatever an agent keeps in its slots."""
    assert golden() == SessionValue.of(json.loads(json.dumps(GOLDEN)))
    assert GOLDEN == SessionValue.of(GOLDEN).to_json()


def test_a_new_session_is_complete():
    """S1-42: no part is missing; what is empty and may be left out is."""
    new = SessionValue().to_json()
    assert GOLDEN.keys() == new.keys()
    assert {"summary": "", "window_messages": [], "mode": FULL_HISTORY} == new["message_context"]
    assert {"summary": "", "window_messages": []} == SessionValue(
        message_context=MessageContext(mode="")
    ).to_json()["message_context"]


def test_chronic_diseases_are_called_history():
    """S1-22, C1-12: the attribute and the key have the document's two names."""
    assert {"history": ["高血压"]}.items() <= SessionValue(
        user_snapshot=UserProfile(chronic_diseases=["高血压"])
    ).to_json()["user_snapshot"].items()
    assert ["高血压"] == SessionValue.of(
        {"user_snapshot": {"history": ["高血压"]}}
    ).user_snapshot.chronic_diseases


@pytest.mark.parametrize("key", ["shared", "entities"])
def test_shared_and_entities_are_one_thing(key):
    """S1-23, C1-12: setting one yields both, in JSON, in the constructor, by attribute and by the document's name."""
    dizzy = SharedEntities(disease="高血压")
    assert (
        "高血压"
        == SessionValue.of({"global_state": {key: {"disease": "高血压"}}}).global_state.shared.disease
    )
    for state in (GlobalState(**{key: dizzy}), GlobalState(**{key.capitalize(): dizzy})):
        assert state.shared is state.entities is dizzy
    for name in (key, key.capitalize()):
        state = GlobalState()
        setattr(state, name, dizzy)
        assert state.Shared is state.Entities is dizzy


def test_entities_of_both_names_are_merged():
    """S1-23: what only one of the two says is kept."""
    found = SessionValue.of(
        {"global_state": {"shared": {"disease": "高血压"}, "entities": {"target_dept": "心内科"}}}
    )
    assert ("高血压", "心内科") == (
        found.global_state.shared.disease,
        found.global_state.entities.target_dept,
    )


@pytest.mark.parametrize(
    ("given", "role"), [("user", "user"), ("Human", "user"), ("assistant", "assistant"), ("AI", "assistant")]
)
def test_roles_are_user_and_assistant(given, role):
    """S1-20: other words for the two are understood."""
    assert role == Message(given, "x").role


@pytest.mark.parametrize("role", ["system", "", "tool"])
def test_other_roles_are_refused(role):
    """S1-20."""
    with pytest.raises(InvalidArgumentError, match="role"):
        Message(role, "x")


def test_an_old_session_without_a_checkpoint_has_the_full_mode():
    """S1-60: a session from before version 2.0, whatever mode it claims."""
    old = {"meta": {"conversation_id": "c"}, "message_context": {"summary": "s", "mode": "SUMMARY_N"}}
    found = SessionValue.of(old).message_context
    assert (FULL_HISTORY, "", "s") == (found.mode, found.checkpoint_message_id, found.summary)


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        {},
        {"meta": None, "flow_context": 3, "message_context": [], "global_state": "x", "user_snapshot": None},
        {
            "meta": {"conversation_id": 5, "user_id": None, "updated_at": "now"},
            "flow_context": {"turn_count": True},
            "message_context": {"window_messages": [None, 3, {"role": "system", "content": "x"}], "mode": 7},
            "global_state": {"shared": 1, "agent_slots": None, "pending_action": {}},
            "user_snapshot": {"allergies": "青霉素", "history": [None, 1]},
        },
    ],
)
def test_what_cannot_be_read_is_as_in_a_new_session(damaged):
    """S1-42: a damaged session is no reason to fail."""
    assert SessionValue() == SessionValue.of(damaged)


def test_numbers_of_other_programs_are_whole():
    """S1-17: seconds, even where a program wrote them as a float."""
    assert 17 == SessionValue.of({"meta": {"updated_at": 17.0}}).meta.updated_at


def test_the_context_has_eight_fields_the_query_and_how_far_it_goes():
    """S1-24, C1-6, S1-49."""
    assert [
        "conversation_id", "mode", "session", "history", "full_history", "estimated_tokens", "token_ratio",
        "should_checkpoint_summary", "query", "read_token",
    ] == [known.name for known in fields(MemoryContext)]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (AgentRequest, ["ConversationId", "UserId"]),
        (
            MemoryQueryRequest,
            ["ConversationID", "EnterpriseID", "PatientID", "Query", "TokenThresholdRatio", "RecentTurns",
             "ModelContextWindow"],
        ),
        (MemoryWriteRequest, ["ConversationID", "UserID", "AgentCode", "UserQuery", "AgentResponse"]),
        (MemoryWriteResult, ["ConversationID", "Mode", "UpdatedAt"]),
        (
            MemoryContext,
            ["ConversationID", "Mode", "Session", "History", "FullHistory", "EstimatedTokens", "TokenRatio",
             "ShouldCheckpointSummary", "Query", "ReadToken"],
        ),
    ],
)  # fmt: skip
def test_both_spellings_name_the_same_field(kind, names):
    """S1-24, S1-28, S1-36, S1-37, C1-7: made with the document's names, read and changed with either."""
    record = kind(**{name: name for name in names})
    assert names == [getattr(record, known.name) for known in fields(kind)]
    for name in names:
        setattr(record, name, 1)
    assert [1] * len(names) == [getattr(record, known.name) for known in fields(kind)]


def test_the_same_field_under_two_names_is_refused():
    """Nobody can tell which was meant."""
    with pytest.raises(TypeError, match="two names"):
        AgentRequest(conversation_id="a", ConversationId="b")
    with pytest.raises(TypeError):
        AgentRequest(conversation="a")


def test_constants_and_key_have_the_documents_names_and_values():
    """S1-08, S1-09, S1-13, S1-44, S1-50."""
    assert (
        ("FULL_HISTORY", "SUMMARY_N")
        == (FULL_HISTORY, SUMMARY_N)
        == (MemoryModeFullHistory, MemoryModeSummaryN)
    )
    assert (0.75, 8, 16000) == (
        defaultMemoryTokenThresholdRatio,
        defaultMemoryRecentTurns,
        defaultModelContextWindow,
    )
    assert "short_term_memory:session:conv-123" == SESSION_KEY % "conv-123"
