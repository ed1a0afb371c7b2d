export { createPagefile, PagefileError } from "./client.ts";
export type {
  CallOptions,
  ChatEvent,
  Format,
  Input,
  Output,
  Pagefile,
  PagefileOptions,
  ProblemDocument,
  Window,
} from "./client.ts";
export { OPERATIONS } from "./operations.ts";
import type { components } from "./schema.ts";
export type { components, operations, paths } from "./schema.ts";

type Schemas = components["schemas"];
export type AnthropicMessage = Schemas["AnthropicMessage"];
export type Checkpoint = Schemas["CheckpointOut"];
export type Conversation = Schemas["ConversationOut"];
export type Fact = Schemas["FactOut"];
export type Hit = Schemas["HitOut"];
export type OpenAIMessage = Schemas["OpenAIMessage"];
export type Page = Schemas["PageOut"];
export type ResponsesItem = Schemas["ResponsesItem"];
export type Turn = Schemas["TurnOut"];
