package contract

import "github.com/google/uuid"

// Message is something one service says to the others about one transfer, before it is put into an envelope.
type Message struct {
	ID   uuid.UUID // the envelope's messageId
	Type string
	Data Data
}

// Say makes the message of a type about a transfer. Its id follows from transfer and type (UUIDv5, the transfer's id being the
// namespace): a transfer goes through each step at most once, so whoever has to say the same thing again, because it was
// asked again, says it under the same id, and the reader's inbox absorbs it.
func Say(transfer uuid.UUID, messageType string, data Data) Message {
	data.TransferID = Some(transfer.String())
	return Message{ID: uuid.NewSHA1(transfer, []byte(messageType)), Type: messageType, Data: data}
}
